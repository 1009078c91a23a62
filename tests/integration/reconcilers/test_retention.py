"""Files that a crash leaves in the blob store without a row are swept up, and nothing else."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from jobs.logs import blobs
from jobs.models import Attempt, Installation, LogChunk, Upload, UserSession
from jobs.reconcilers import retention
from tests.factories import make_attempt, make_project

pytestmark = pytest.mark.django_db

OWNED, ORPHAN = "a" * 64, "b" * 64


@pytest.fixture(autouse=True)
def store(settings, tmp_path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "blobs"
    return tmp_path / "blobs"


def put(path: Path, *, days_ago: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"content")
    moment = time.time() - days_ago * 24 * 3600
    os.utime(path, (moment, moment))
    return path


def test_drafts_and_contents_without_an_owner_go_after_a_day(store):
    Upload.objects.create(project=make_project(), digest=OWNED, size_bytes=7, file_count=1)
    uploads = store / "uploads"
    kept = {
        put(uploads / f"{OWNED}.tar.gz", days_ago=9),
        put(uploads / f"{ORPHAN}.tar.gz", days_ago=0.9),
        put(uploads / ".draft-now"),
    }
    gone = {
        put(uploads / f"{'c' * 64}.tar.gz", days_ago=1.1),
        put(uploads / ".draft-killed", days_ago=1.1),
    }
    retention.step()
    retention.step()
    assert {path for path in kept | gone if path.exists()} == kept


def write_log(store: Path, attempt_id: int, *, days_ago: float = 0.0) -> Path:
    return put(store / blobs.write(attempt_id, 1, b"content").name, days_ago=days_ago)


def deleted_attempt() -> int:
    attempt = make_attempt()
    pk = attempt.pk
    attempt.job.delete()
    return pk


def test_the_log_of_a_job_that_was_deleted_goes_after_a_day_and_others_stay(store):
    retention.step()
    gone = write_log(store, deleted_attempt(), days_ago=1.1)
    young = deleted_attempt()
    left = [write_log(store, young, days_ago=9), write_log(store, young, days_ago=0.9)]
    left.append(write_log(store, make_attempt().pk, days_ago=9))
    retention.step()
    assert (gone.exists(), gone.parent.exists()) == (False, False)
    assert all(path.exists() for path in left)


def test_an_empty_store_is_no_reason_to_stop_and_is_marked_as_this_installations(store):
    retention.step()
    marks = [path for path in store.rglob("*") if path.is_file()]
    assert marks == [store / "installation" / Installation.current().key]


@pytest.fixture
def orphans(store) -> list[Path]:
    """List what would be swept up, if the store were the portal's."""
    upload = put(store / "uploads" / f"{ORPHAN}.tar.gz", days_ago=9)
    return [upload, write_log(store, deleted_attempt(), days_ago=9)]


def assert_kept(orphans: list[Path], caplog) -> None:
    caplog.clear()
    retention.step()
    assert all(path.exists() for path in orphans)
    [said] = [each.getMessage() for each in caplog.records if "swept" in each.getMessage()]
    assert "DATABASE_URL" in said


def test_an_empty_database_sweeps_no_store_of_which_it_knows_nothing(store, orphans, caplog):
    assert_kept(orphans, caplog)
    assert not (store / "installation").exists()


def test_a_database_sweeps_no_store_of_another_installation(store, orphans, caplog):
    put(store / "installation" / "cafe00")
    know(orphans[1])
    assert_kept(orphans, caplog)


def test_a_database_older_than_the_store_sweeps_nothing(store, orphans, caplog):
    put(store / "installation" / Installation.current().key)
    future = write_log(store, deleted_attempt() + 1, days_ago=9)
    assert_kept([*orphans, future], caplog)
    blobs.delete_all(int(future.parent.name))
    retention.step()
    assert not any(path.exists() for path in orphans)


def test_a_store_without_a_mark_is_taken_when_the_database_knows_something_in_it(store, orphans):
    know(write_log(store, make_attempt().pk))
    retention.step()
    assert (store / "installation" / Installation.current().key).exists()
    assert not any(path.exists() for path in orphans)


def know(blob: Path) -> None:
    """Write the chunk row of a blob, under a new attempt if its own was deleted."""
    attempt_id = int(blob.parent.name)
    if not Attempt.objects.filter(pk=attempt_id).exists():
        attempt_id = make_attempt().pk
    now = timezone.now()
    LogChunk.objects.create(
        attempt_id=attempt_id,
        first_line=1,
        line_count=1,
        first_at=now,
        last_at=now,
        blob_name=f"logs/{blob.parent.name}/{blob.name}",
        raw_bytes=7,
        stored_bytes=7,
    )


def test_content_that_comes_again_while_the_store_is_swept_stays(store, monkeypatch):
    retention.step()
    folder = store / "uploads"
    paths = [put(folder / f"{letter * 64}.tar.gz", days_ago=9) for letter in "ab"]
    delete = default_storage.delete

    def own_the_other(name: str) -> None:
        [other] = [path for path in paths if path.name not in name]
        digest = other.name.removesuffix(".tar.gz")
        Upload.objects.create(project=make_project(), digest=digest, size_bytes=7, file_count=1)
        delete(name)

    monkeypatch.setattr(default_storage, "delete", own_the_other)
    retention.step()
    assert sorted(path.exists() for path in paths) == [False, True]


def test_a_folder_that_cannot_be_read_keeps_nothing_else_from_being_purged(
    store, orphans, monkeypatch
):
    put(store / "installation" / Installation.current().key)
    expired = UserSession.objects.create(
        session_key="old", expire_date=timezone.now() - timedelta(days=1)
    )

    def broken() -> int:
        raise OSError("Input/output error")

    monkeypatch.setattr(retention, "sweep_uploads", broken)
    retention.step()
    assert [path.exists() for path in orphans] == [True, False]
    assert not UserSession.objects.filter(pk=expired.pk).exists()
