"""A portal whose disk fills up: new work is refused or waits, running jobs go on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from jobs.actions.projects.store_upload import store_upload
from jobs.attempt_tokens import attempt_token
from jobs.errors import StorageFullError
from jobs.ground import disk_space
from jobs.ground.disk_space import MIB
from jobs.logs import blobs
from jobs.models import Cluster, Job, JobEvent
from jobs.permissions import Actor
from jobs.reconcilers import queue, recovering
from jobs.statuses import ClusterStatus, JobStatus, Role
from monarch_client.sync.archive import ArchiveFacts
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.frame_bytes import body, lines

pytestmark = pytest.mark.django_db
SOURCE = "name: hello\nrun: echo hello\n"
RESERVE_MB = 512


class Disk:
    """A data directory's disk, as statvfs reports it."""

    def __init__(self, free_mb: int) -> None:
        self.free_mb = free_mb
        self.total_mb = 100 * 1024

    def __call__(self, _path: Any) -> Any:
        return SimpleNamespace(f_frsize=MIB, f_blocks=self.total_mb, f_bavail=self.free_mb)


@pytest.fixture(autouse=True)
def disk(settings, monkeypatch, tmp_path) -> Disk:
    settings.MPORTAL_DISK_RESERVE_MB = RESERVE_MB
    settings.MEDIA_ROOT = tmp_path / "blobs"
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    disk = Disk(RESERVE_MB - 1)
    monkeypatch.setattr(disk_space.os, "statvfs", disk)
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return disk


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def member(project):
    return make_member(project, Role.MEMBER)


@pytest.fixture
def api(member) -> Client:
    _, secret = make_token(member)
    return Client(headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def browser(member) -> Client:
    browser = Client()
    browser.force_login(member)
    return browser


def post(api: Client, path: str, content: Any, kind: str) -> Any:
    return api.post(f"/api/v1/projects/rl/{path}", content, content_type=kind)


REFUSED = {
    "submit": lambda api, job: post(api, "jobs", SOURCE, "application/yaml"),
    "rerun": lambda api, job: post(api, f"jobs/{job.pk}/actions/rerun", "", "application/json"),
    "upload": lambda api, job: post(api, "uploads", b"x", "application/gzip"),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_new_work_is_refused_with_what_is_free_what_is_needed_and_what_to_do(
    call, api, project, disk
):
    job = make_job(project, status=JobStatus.SUCCEEDED)
    answer = call(api, job)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (507, "storage_full")
    assert "511 MiB of 102,400 MiB are free" in problem["detail"]
    assert "above 512 MiB" in problem["detail"]
    assert "Delete jobs" in problem["detail"]
    assert int(answer["Retry-After"]) > 0
    assert Job.objects.count() == 1

    disk.free_mb = RESERVE_MB
    assert call(api, job).status_code != 507


def test_who_may_not_submit_hears_that_and_not_how_full_the_disk_is(project):
    _, secret = make_token(make_member(project, Role.VIEWER))
    answer = post(
        Client(headers={"Authorization": f"Bearer {secret}"}), "jobs", SOURCE, "application/yaml"
    )
    assert answer.status_code == 403


def test_the_submit_page_says_so_and_keeps_what_was_written(browser):
    page = browser.post("/rl/jobs/new", {"source": "name: kept-text\nrun: echo\n"})
    assert page.status_code == 507
    assert "nearly full" in page.content.decode()
    assert "kept-text" in page.content.decode()
    assert not Job.objects.exists()


def test_the_rerun_button_says_so_and_stays_on_the_page(browser, project):
    job = make_job(project, status=JobStatus.SUCCEEDED)
    page = browser.post(f"/rl/jobs/{job.pk}/rerun", follow=True)
    assert "nearly full" in page.content.decode()
    assert Job.objects.count() == 1


def test_every_page_shows_it_while_it_lasts(browser, disk):
    assert "nearly full" in browser.get("/rl/jobs").content.decode()
    disk.free_mb = RESERVE_MB
    assert "nearly full" not in browser.get("/rl/jobs").content.decode()


def test_queued_jobs_wait_with_a_sentence_and_start_by_themselves(disk):
    job = make_job(backend_name="fake")
    queue.run_pass()
    job.refresh_from_db()
    assert job.status == JobStatus.QUEUED
    assert "nearly full" in job.message
    disk.free_mb = RESERVE_MB
    queue.run_pass()
    job.refresh_from_db()
    assert job.status == JobStatus.PROVISIONING


def test_a_recovery_waits_and_its_history_says_so_once(disk):
    job = make_job(status=JobStatus.RECOVERING)
    make_attempt(job, ended_at=job.created_at, stop_reason="WORKER_LOST")
    Cluster.objects.update(status=ClusterStatus.GONE)
    for _ in range(3):
        recovering.step(job.pk)
    assert JobEvent.objects.filter(job=job, message__contains="nearly full").count() == 1
    disk.free_mb = RESERVE_MB
    recovering.step(job.pk)
    job.refresh_from_db()
    assert job.status == JobStatus.PROVISIONING


def test_running_jobs_deliver_until_a_quarter_of_the_reserve_is_left(client, disk):
    attempt = make_attempt(make_job(status=JobStatus.RUNNING))
    headers = {"Authorization": f"Bearer {attempt_token(attempt.job_id, attempt.number)}"}

    def send(raw: bytes) -> Any:
        url = f"/api/v1/attempts/{attempt.pk}/frames"
        return client.post(url, raw, content_type="application/x-ndjson", headers=headers)

    assert send(body(*lines(1, 3))).json() == {"acked": {"0": 3}}
    disk.free_mb = RESERVE_MB // 4 - 1
    answer = send(body(*lines(4, 6)))
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
    assert answer["Retry-After"]
    # A sign of life needs no room, and keeps the attempt from being taken for silent.
    assert send(b"").json() == {"acked": {"0": 3}}
    disk.free_mb = RESERVE_MB // 4
    assert send(body(*lines(4, 6))).json() == {"acked": {"0": 6}}


def test_readiness_reports_it_without_failing(client, disk, redis_url):
    assert client.get("/readyz").json()["disk"] == "nearly full"
    assert client.get("/readyz").status_code == 200
    disk.free_mb = RESERVE_MB
    assert client.get("/readyz").json()["disk"] == "ok"


@pytest.mark.parametrize(("total_mb", "reserve_mb"), [(100 * 1024, 512), (2000, 100)])
def test_a_small_disk_is_not_refused_for_ever(settings, disk, total_mb, reserve_mb):
    settings.MPORTAL_DISK_RESERVE_MB = -1
    disk.total_mb = total_mb
    assert disk_space.disk_space().reserve == reserve_mb * MIB


def test_a_reserve_that_was_set_is_taken_as_it_is(settings):
    settings.MPORTAL_DISK_RESERVE_MB = 50 * 1024
    assert disk_space.disk_space().reserve == 50 * 1024 * MIB


def test_the_reserve_can_be_switched_off(settings, disk):
    settings.MPORTAL_DISK_RESERVE_MB = 0
    disk.free_mb = 0
    assert disk_space.shortage() == ""


def test_an_upload_that_meets_the_end_of_the_disk_leaves_nothing(member, project, disk, settings):
    disk.free_mb = 10 * RESERVE_MB
    chunks = filling_up(disk)
    with pytest.raises(StorageFullError):
        store_upload(Actor(user=member, source=""), project, chunks)
    assert next(chunks)  # the rest was not read
    assert [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()] == []


def test_an_upload_without_room_is_removed_and_reported_with_a_message(
    member, project, disk, settings, monkeypatch
):
    disk.free_mb = 10 * RESERVE_MB
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(
        "jobs.actions.projects.keep_archive._keep", lambda *_: (_ for _ in ()).throw(full)
    )
    facts = ArchiveFacts("0" * 64, size_bytes=1, file_count=1, unpacked_bytes=1)
    monkeypatch.setattr("jobs.actions.projects.keep_archive._checked", lambda _draft: facts)
    with pytest.raises(StorageFullError):
        store_upload(Actor(user=member, source=""), project, iter([b"x"]))
    assert [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()] == []


def filling_up(disk: Disk) -> Iterator[bytes]:
    """Yield an upload during which another process takes the free space."""
    for _ in range(100):
        yield b"x" * MIB
        disk.free_mb -= RESERVE_MB


def test_a_chunk_that_cannot_be_written_leaves_no_half_of_it(monkeypatch, settings):
    def half(name: str, _content: Any) -> str:
        path = settings.MEDIA_ROOT / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    attempt = make_attempt()
    monkeypatch.setattr(default_storage, "save", half)
    with pytest.raises(OSError, match="No space"):
        blobs.write(attempt.pk, 1, b"whole")
    assert [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()] == []
