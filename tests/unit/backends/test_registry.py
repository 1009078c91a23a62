"""The choice of a job's backend."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage

from jobs.backends import registry
from jobs.errors import BackendError, BackendUnavailableError


@pytest.fixture(autouse=True)
def installation(settings, tmp_path: Path) -> Path:
    settings.MPORTAL_HOME = tmp_path
    settings.MPORTAL_LOCAL_BACKEND = True
    settings.MPORTAL_FAKE_BACKEND = ""
    return tmp_path


@pytest.mark.parametrize("resources", [None, {}, {"infra": "local"}, {"infra": "*"}])
def test_a_job_without_another_infra_runs_on_this_machine(resources) -> None:
    assert registry.backend_for({"resources": resources}) == "local"
    assert registry.get("local").name == "local"
    assert registry.problems_of({"resources": resources}) == []


@pytest.mark.parametrize("resources", [{"infra": "slurm/main"}, {"cloud": "aws"}])
def test_another_infra_is_refused_by_its_name(resources) -> None:
    [(path, message)] = registry.problems_of({"resources": resources})
    assert path == "resources.infra"
    assert "needs SkyPilot" in message


def test_a_backend_that_is_switched_off_is_not_there(settings) -> None:
    settings.MPORTAL_LOCAL_BACKEND = False
    assert registry.names() == []
    for spec in ({}, {"resources": {"infra": "local"}}):
        with pytest.raises(BackendUnavailableError):
            registry.backend_for(spec)
    with pytest.raises(BackendUnavailableError):
        registry.get("local")


def test_the_fake_backend_is_there_when_it_is_requested(settings, tmp_path: Path) -> None:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    assert registry.names() == ["fake", "local"]
    assert registry.backend_for({}) == "fake"
    assert registry.backend_for({"resources": {"infra": "local"}}) == "local"
    assert registry.get("fake").name == "fake"


def test_what_the_backend_cannot_do_is_reported(settings) -> None:
    settings.MPORTAL_LOCAL_NODES = 2
    assert [path for path, _ in registry.problems_of({"num_nodes": 3})] == ["num_nodes"]


def test_an_upload_is_opened_as_a_file_from_any_blob_store(monkeypatch) -> None:
    storage = InMemoryStorage()
    monkeypatch.setattr(registry, "default_storage", storage)
    digest = hashlib.sha256(b"content").hexdigest()
    storage.save(f"uploads/{digest}.tar.gz", ContentFile(b"content"))
    with registry.open_upload(f"upload:{digest}") as path:
        assert path.read_bytes() == b"content"
    with (
        pytest.raises(BackendError, match="not in the blob store"),
        registry.open_upload("upload:x"),
    ):
        pass
