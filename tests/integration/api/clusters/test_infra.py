"""Locations where jobs can run: shown at once as known, refreshed in the background."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.backends import registry
from jobs.backends.base import CloudState, GpuState
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendUnavailableError, StillLookingError
from jobs.reconcilers import infra as reconciler

CLOUDS = [
    CloudState("AWS", is_enabled=False, reason="No credentials: run aws configure."),
    CloudState("Slurm", is_enabled=True),
]
GPUS = [GpuState("slurm/main", f"node{n}", "H100", 8, n) for n in range(3)]


@pytest.fixture(autouse=True)
def fake(settings, tmp_path, redis_client, monkeypatch) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr(FakeBackend, "clouds", lambda *_: CLOUDS)
    monkeypatch.setattr(FakeBackend, "gpus", lambda *_: GPUS)
    monkeypatch.setattr(reconciler, "wake_later", lambda *_, **__: None)
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    return backend


@pytest.fixture
def hints(monkeypatch) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr("jobs.readers.infra.wake", sent.append)
    return sent


def infra_of(caller: Any) -> dict[str, dict[str, Any]]:
    response = caller.get("/infra")
    assert response.status_code == 200
    return {row["backend"]: row for row in response.json()["results"]}


def test_the_first_view_has_the_clouds_queried_and_the_next_shows_the_answer(viewer, hints):
    assert infra_of(viewer)["fake"]["is_asking"] is True
    assert infra_of(viewer)["fake"]["clouds"] == []
    assert hints == ["infra"]
    reconciler.step()
    found = infra_of(viewer)["fake"]
    assert found["is_asking"] is False
    assert [(cloud["name"], cloud["is_enabled"]) for cloud in found["clouds"]] == [
        ("Slurm", True),
        ("AWS", False),
    ]
    assert "aws configure" in found["clouds"][1]["reason"]
    assert found["gpus"] == [
        {"infra": "slurm/main", "gpu": "H100", "nodes": 3, "total": 24, "free": 3}
    ]


def test_without_viewers_no_backend_is_queried(monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(FakeBackend, "clouds", fail)
    reconciler.step()


def test_an_answer_is_requested_again_after_a_minute(viewer, hints, monkeypatch, time_machine):
    infra_of(viewer)
    reconciler.step()
    monkeypatch.setattr(FakeBackend, "gpus", lambda *_: [])
    reconciler.step()
    assert infra_of(viewer)["fake"]["gpus"]
    time_machine.move_to(timezone.now() + timedelta(seconds=61))
    found = infra_of(viewer)["fake"]
    assert found["is_asking"] and found["gpus"]
    reconciler.step()
    assert infra_of(viewer)["fake"]["gpus"] == []


def test_a_cloud_that_is_slow_does_not_keep_the_rest_waiting(viewer, hints, monkeypatch):
    def slow(*_: object) -> None:
        raise StillLookingError

    infra_of(viewer)
    with monkeypatch.context() as patch:
        patch.setattr(FakeBackend, "gpus", slow)
        reconciler.step()
        found = infra_of(viewer)["fake"]
        assert found["is_asking"] and len(found["clouds"]) == 2
    reconciler.step()
    assert infra_of(viewer)["fake"]["is_asking"] is False


def test_what_cannot_be_known_says_why(viewer, hints, monkeypatch):
    def refuse(*_: object) -> None:
        raise BackendUnavailableError("SkyPilot's API server does not answer.")

    monkeypatch.setattr(FakeBackend, "clouds", refuse)
    infra_of(viewer)
    reconciler.step()
    found = infra_of(viewer)["fake"]
    assert found["cloud_problem"] == "SkyPilot's API server does not answer."
    assert found["gpus"]


def test_the_portals_own_machine_has_a_number_of_nodes_and_no_clouds(viewer, hints):
    local = infra_of(viewer)["local"]
    assert (local["num_nodes"], local["clouds"], local["is_asking"]) == (16, [], False)
