"""The code that a head node stores for the next attempt of its job."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.core.files.storage import default_storage

from jobs.actions.projects import sweep_uploads as module
from jobs.actions.projects.sweep_uploads import sweep_uploads
from jobs.attempt_tokens import attempt_token
from jobs.backends.fake.backend import FakeBackend
from jobs.ground import clock
from jobs.models import Attempt, JobCode
from jobs.reconcilers import provisioning
from tests.factories import make_attempt, make_job, make_spec
from tests.integration.api.conftest import assert_problem
from tests.unit.sync.archives import member, tar_gz

TREE = "a" * 64


@pytest.fixture(autouse=True)
def _blobs(settings, tmp_path) -> None:
    settings.MEDIA_ROOT = tmp_path / "blobs"


@pytest.fixture
def attempt(db: None) -> Attempt:
    return make_attempt(make_job(status="RUNNING"))


@pytest.fixture
def put(client, attempt):
    """PUT an archive with the attempt's token, or with another one."""

    def call(raw: bytes, *, token: str | None = None, tree: str = TREE) -> Any:
        if token is None:
            token = attempt_token(attempt.job_id, attempt.number)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return client.put(
            f"/api/v1/attempts/{attempt.pk}/code?tree={tree}",
            raw,
            content_type="application/gzip",
            headers=headers,
        )

    return call


def archive(text: bytes) -> bytes:
    return tar_gz(member("train.py", text)).getvalue()


def test_the_newest_code_of_a_job_is_what_counts(put, attempt) -> None:
    assert put(archive(b"one")).status_code == 200
    newest = archive(b"two")
    digest = hashlib.sha256(newest).hexdigest()
    assert put(newest, tree="b" * 64).json() == {"digest": digest}
    code = JobCode.objects.get()
    assert (code.job_id, code.digest, code.tree) == (attempt.job_id, digest, "b" * 64)
    assert (code.file_count, code.attempt_number) == (1, attempt.number)
    assert default_storage.exists(f"uploads/{digest}.tar.gz")


def test_only_the_open_attempt_itself_stores_code(put, attempt) -> None:
    assert_problem(put(archive(b"x"), token=""), 401, "not_authenticated")
    assert_problem(put(archive(b"x"), token="mpa_wrong"), 403, "permission_denied")
    Attempt.objects.update(ended_at=clock.now())
    assert_problem(put(archive(b"x")), 410, "attempt_closed")
    assert not JobCode.objects.exists()


def test_code_is_checked_like_an_upload(put, settings) -> None:
    assert_problem(put(b"no archive"), 422, "invalid_upload")
    assert_problem(put(tar_gz(member("../x")).getvalue()), 422, "invalid_upload")
    assert_problem(put(archive(b"x"), tree="../x"), 422, "invalid_upload")
    settings.MPORTAL_UPLOAD_MAX_BYTES = 10
    assert_problem(put(archive(b"x" * 100)), 413, "upload_too_large")
    assert not JobCode.objects.exists()


@pytest.mark.django_db
def test_the_next_attempt_starts_with_the_code(fake, monkeypatch) -> None:
    spec = make_spec(workdir={"url": "https://git.example.org/x.git"})
    job = make_job(status="PROVISIONING", spec=spec)
    attempt = make_attempt(job, number=2)
    JobCode.objects.create(
        job=job, digest="c" * 64, tree=TREE, size_bytes=1, file_count=1, attempt_number=1
    )
    given = []
    launch = FakeBackend.launch
    monkeypatch.setattr(FakeBackend, "launch", lambda self, r: given.append(r) or launch(self, r))
    provisioning.step(attempt.job_id)
    (request,) = given
    assert [(each.target, each.reference) for each in request.uploads] == [
        ("workdir", f"upload:{'c' * 64}")
    ]
    # A repository that the specification names is not fetched over it.
    assert request.spec["workdir"] == f"upload:{'c' * 64}"


def test_replaced_code_of_an_earlier_attempt_is_swept_and_the_current_one_is_not(
    put, monkeypatch
) -> None:
    monkeypatch.setattr(module.blobs, "is_old", lambda _name: True)
    first = put(archive(b"one")).json()["digest"]
    # The attempt may have started with it.
    JobCode.objects.update(attempt_number=0)
    assert sweep_uploads() == 0
    second = put(archive(b"two")).json()["digest"]
    assert sweep_uploads() == 1
    assert not default_storage.exists(f"uploads/{first}.tar.gz")
    assert default_storage.exists(f"uploads/{second}.tar.gz")


def test_code_that_its_attempt_replaces_is_deleted_at_once_unless_another_job_has_it(put) -> None:
    names = [
        f"uploads/{put(archive(text), tree=tree * 64).json()['digest']}.tar.gz"
        for text, tree in ((b"one", "a"), (b"two", "b"))
    ]
    assert [default_storage.exists(name) for name in names] == [False, True]
    JobCode.objects.create(
        job=make_job(),
        digest=JobCode.objects.get().digest,
        tree="b" * 64,
        size_bytes=1,
        file_count=1,
        attempt_number=1,
    )
    put(archive(b"three"), tree="c" * 64)
    assert default_storage.exists(names[1])
