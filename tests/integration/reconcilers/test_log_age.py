"""Logs of a certain age are removed, and a reader who opens one gets a message about that."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.logs import blobs, sealing
from jobs.models import Attempt, HostMetrics, JobEvent, LogBlock, LogChunk, LogHead, Project
from jobs.reconcilers import retention
from jobs.statuses import EventKind
from tests.factories import make_attempt, make_job, make_project, make_token
from tests.frame_bytes import body, lines

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def store(settings, tmp_path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "blobs"
    settings.MPORTAL_LOG_DAYS = 30
    return tmp_path / "blobs"


def logged(attempt: Attempt, first: int = 1, last: int = 2) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(*lines(first, last)))


def ended(days: float, job=None, *, chunks: int = 1) -> Attempt:
    """Create an attempt that ended `days` ago, with its log in so many chunks."""
    job = job or make_job(make_project("vision"), status="SUCCEEDED")
    attempt = make_attempt(job, ended_at=timezone.now() - timedelta(days=days))
    for number in range(chunks):
        logged(attempt, 2 * number + 1, 2 * number + 2)
        assert sealing.seal(attempt.pk) == 1
    return attempt


def files(store: Path) -> list[str]:
    return [path.name for path in (store / "logs").rglob("*") if path.is_file()]


@pytest.fixture
def get(client):
    """GET something of an attempt's job."""

    def call(of: Attempt, path: str, **query: object):
        _, secret = make_token(of.job.submitted_by)
        base = f"/api/v1/projects/{of.job.project.slug}/jobs/{of.job_id}"
        return client.get(base + path, query, headers={"Authorization": f"Bearer {secret}"})

    return call


@pytest.mark.feature("P3.3")
def test_an_old_log_goes_and_everything_else_of_the_job_stays(store) -> None:
    old = ended(30.1)
    JobEvent.objects.create(job=old.job, kind=EventKind.NOTE, message="kept")
    HostMetrics.objects.create(attempt=old, rank=0, at=timezone.now(), latest={})
    retention.step()
    retention.step()
    assert (LogChunk.objects.count(), LogBlock.objects.count(), files(store)) == (0, 0, [])
    assert not (store / "logs" / str(old.pk)).exists()
    old.refresh_from_db()
    assert old.ended_at is not None
    assert (JobEvent.objects.count(), HostMetrics.objects.count()) == (1, 1)
    assert LogHead.objects.get().acked == {"0": 2}


def test_a_younger_log_and_that_of_an_attempt_that_runs_stay(store) -> None:
    ended(29.9)
    running = make_attempt(
        make_job(status="RUNNING"), created_at=timezone.now() - timedelta(days=90)
    )
    logged(running)
    retention.step()
    assert (LogChunk.objects.count(), LogBlock.objects.count(), len(files(store))) == (1, 1, 1)
    assert not LogHead.objects.exclude(removed_at=None).exists()


def test_the_logs_of_a_deleted_project_go_whatever_their_age(store, settings) -> None:
    settings.MPORTAL_LOG_DAYS = 0
    young = ended(0.1, make_job(make_project("deleted"), status="SUCCEEDED"))
    kept = ended(0.1)
    Project.objects.filter(pk=young.job.project_id).update(deleted_at=timezone.now())
    retention.step()
    assert set(LogChunk.objects.values_list("attempt", flat=True)) == {kept.pk}
    assert LogHead.objects.get(removed_at__isnull=False).pk == young.pk


def test_without_a_number_of_days_logs_are_kept_for_ever(store, settings) -> None:
    settings.MPORTAL_LOG_DAYS = 0
    ended(10_000)
    retention.step()
    assert len(files(store)) == 1


@pytest.mark.feature("P3.3")
def test_rest_says_when_and_after_how_many_days(get) -> None:
    attempt = ended(30.1)
    retention.step()
    said = f"The log was removed on {timezone.now():%Y-%m-%d} after 30 days."
    for path in ("/logs", "/logs/search"):
        answer = get(attempt, path).json()
        assert (answer["results"], answer["removed"]) == ([], said)
    [row] = get(attempt, "/attempts").json()["results"]
    assert row["log_removed_at"].startswith(f"{timezone.now():%Y-%m-%d}")


def test_the_page_says_it_too(client) -> None:
    attempt = ended(30.1)
    retention.step()
    client.force_login(attempt.job.submitted_by)
    page = client.get(f"/vision/jobs/{attempt.job_id}").content.decode()
    assert "The log was removed on" in page and "Nothing yet." not in page


def test_of_several_attempts_those_that_are_left_are_read_and_the_removed_ones_reported(
    get,
) -> None:
    job = make_job(make_project("vision"), status="SUCCEEDED")
    first, second = ended(31, job), ended(1, job)
    retention.step()
    answer = get(first, "/logs").json()
    assert {row["attempt"] for row in answer["results"]} == {2}
    assert answer["removed"].startswith("The log of attempt 1 was removed on")
    assert get(first, "/logs", attempt=2).json()["removed"] == ""
    assert get(first, "/logs", attempt=1).json()["results"] == []
    Attempt.objects.filter(pk=second.pk).update(ended_at=timezone.now() - timedelta(days=31))
    retention.step()
    assert get(first, "/logs").json()["removed"].startswith("The logs of 2 attempts were removed")


def test_a_log_that_is_there_has_nothing_removed(get) -> None:
    attempt = ended(1)
    answer = get(attempt, "/logs").json()
    assert (len(answer["results"]), answer["removed"]) == (2, "")


def test_a_sweep_removes_a_bounded_number_and_the_next_goes_on(store, monkeypatch, get) -> None:
    monkeypatch.setattr(retention, "CHUNKS_A_SWEEP", 2)
    attempt = ended(40, chunks=3)
    retention.step()
    assert (LogChunk.objects.count(), len(files(store))) == (1, 1)
    assert get(attempt, "/logs").json()["results"] == []
    retention.step()
    assert (LogChunk.objects.count(), files(store)) == (0, [])


@pytest.mark.parametrize("place", ["delete_many", "delete_all"])
def test_a_crash_between_blob_and_row_shows_nothing_wrong_and_is_finished_later(
    store, monkeypatch, get, place
) -> None:
    class Killed(BaseException):
        pass

    attempt = ended(40, chunks=2)
    original = getattr(blobs, place)

    def die_after(*arguments: object) -> None:
        original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(blobs, place, die_after)
        with pytest.raises(Killed):
            retention.step()
    assert (LogChunk.objects.count(), files(store)) == (2, [])
    answer = get(attempt, "/logs")
    assert (answer.status_code, answer.json()["results"]) == (200, [])
    retention.step()
    assert LogChunk.objects.count() == 0


def test_a_store_that_is_not_named_any_more_keeps_its_rows_and_holds_nothing_else_up(
    store,
) -> None:
    far, near = ended(50), ended(40, make_job(make_project("other"), status="FAILED"))
    LogChunk.objects.filter(attempt=far).update(store="s3")
    retention.step()
    assert list(LogChunk.objects.values_list("attempt", flat=True)) == [far.pk]
    assert not (store / "logs" / str(near.pk)).exists()


def test_lines_that_arrive_after_that_are_never_shown_and_go_with_the_next_sweep(get) -> None:
    attempt = ended(40)
    retention.step()
    logged(attempt, 3, 4)
    assert get(attempt, "/logs").json()["results"] == []
    assert sealing.seal(attempt.pk) == 1
    retention.step()
    assert LogChunk.objects.count() == 0


def test_a_chunk_that_is_being_sealed_meanwhile_finds_its_lines_gone(store, monkeypatch) -> None:
    attempt = make_attempt(make_job(status="FAILED"), ended_at=timezone.now() - timedelta(days=40))
    logged(attempt)
    write = blobs.write

    def write_while_it_is_removed(*arguments: object):
        blob = write(*arguments)
        retention.step()
        return blob

    monkeypatch.setattr(blobs, "write", write_while_it_is_removed)
    assert sealing.seal(attempt.pk) == 0
    assert (LogChunk.objects.count(), LogBlock.objects.count(), files(store)) == (0, 0, [])
