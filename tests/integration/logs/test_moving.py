"""Moving logs between files and S3: nothing is lost, whatever is killed, away or in the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from jobs.actions.ingest.claim_blobs import claim_blobs
from jobs.errors import NotFoundError
from jobs.logs import blobs, moving, parts, sealing
from jobs.logs.deletion import delete_log
from jobs.logs.moving import CopyDiffersError
from jobs.logs.s3_storage import S3Storage
from jobs.models import Attempt, AuditEntry, LogChunk
from tests.faults.held_points import HeldPoints
from tests.frame_bytes import lines
from tests.integration.logs.log_texts import end, texts
from tests.web_process import CHECKOUT, environment

CHUNKS = 3


@pytest.fixture
def logged(attempt: Attempt, post, bucket) -> Attempt:
    """Create an ended attempt with three chunks in files, which are marked as the portal's own."""
    assert claim_blobs()
    end(attempt)
    for number in range(CHUNKS):
        post(*lines(2 * number + 1, 2 * number + 2))
        assert sealing.seal(attempt.pk) == 1
    return attempt


def files(store: Path) -> list[str]:
    return sorted(str(path.relative_to(store)) for path in store.rglob("*.zst"))


def names() -> list[str]:
    return sorted(LogChunk.objects.values_list("blob_name", flat=True))


def move(to: str) -> str:
    said = StringIO()
    call_command("move_logs", to=to, stdout=said)
    return said.getvalue()


@pytest.mark.django_db
@pytest.mark.feature("P3.3")
def test_logs_move_to_s3_and_back_and_leave_nothing_behind(logged, bucket, blob_store) -> None:
    before = texts(logged)
    assert "3 chunks moved" in move("s3")
    assert (files(blob_store), len(bucket.names())) == ([], CHUNKS)
    assert texts(logged) == before
    assert {chunk.store for chunk in LogChunk.objects.all()} == {"s3"}
    assert "0 chunks are in the other store" in move("s3")
    assert "3 chunks moved" in move("files")
    assert (bucket.names(), files(blob_store)) == ([], names())
    assert texts(logged) == before
    moves = AuditEntry.objects.filter(verb="move_logs").order_by("pk")
    assert [entry.after for entry in moves] == [
        {"store": "s3", "chunks": CHUNKS},
        {"store": "files", "chunks": CHUNKS},
    ]


@pytest.mark.django_db
def test_it_says_where_new_chunks_go_when_that_is_elsewhere(logged) -> None:
    assert "set MPORTAL_LOG_STORE=s3" in move("s3")
    assert "MPORTAL_LOG_STORE" not in move("files")


@pytest.mark.django_db
def test_without_s3_there_is_nowhere_to_move_to() -> None:
    with pytest.raises(CommandError, match="set MPORTAL_S3"):
        move("s3")


@pytest.mark.django_db
def test_a_reader_who_knows_the_old_place_finds_the_new_one(logged) -> None:
    found = list(parts.forward(logged.pk, 1))
    move("s3")
    read = [line for part in found for line in part.stored_lines()]
    assert [line.rpartition(" ")[2] for line in read] == ["s1", "s2", "s3", "s4", "s5", "s6"]


@pytest.mark.django_db(transaction=True)
def test_a_reader_of_a_log_that_is_deleted_meanwhile_learns_so(logged) -> None:
    [first, *_] = parts.forward(logged.pk, 1)
    delete_log(logged)
    with pytest.raises(NotFoundError, match="removed while it was read"):
        first.stored()


@pytest.mark.django_db
def test_the_second_mover_of_a_chunk_changes_nothing_and_removes_its_copy(
    logged, bucket, monkeypatch
) -> None:
    before = texts(logged)
    chunk = LogChunk.objects.first()
    write = blobs.write

    def write_after_a_rival(*arguments, **options):
        monkeypatch.setattr(blobs, "write", write)
        assert moving.move_chunk(chunk, "s3")
        return write(*arguments, **options)

    monkeypatch.setattr(blobs, "write", write_after_a_rival)
    assert not moving.move_chunk(chunk, "s3")
    assert len(bucket.names()) == 1
    assert texts(logged) == before


@pytest.mark.django_db(transaction=True)
def test_a_log_that_is_deleted_while_it_is_moved_leaves_nothing(
    logged, bucket, blob_store, monkeypatch
) -> None:
    write = blobs.write

    def write_while_it_is_deleted(*arguments, **options):
        blob = write(*arguments, **options)
        delete_log(logged)
        return blob

    chunk = LogChunk.objects.first()
    monkeypatch.setattr(blobs, "write", write_while_it_is_deleted)
    with pytest.raises(FileNotFoundError):
        moving.move_chunk(chunk, "s3")
    assert (bucket.names(), files(blob_store)) == ([], [])
    assert "0 chunks moved" in move("s3")


@pytest.mark.django_db
def test_a_copy_that_comes_back_as_something_else_stops_the_move_and_the_row_stays(
    logged, bucket, monkeypatch
) -> None:
    before = texts(logged), names()
    save = S3Storage._save

    def half(storage, name, content):
        content.truncate(10)
        return save(storage, name, content)

    monkeypatch.setattr(S3Storage, "_save", half)
    with pytest.raises(CopyDiffersError):
        list(moving.move_all("s3"))
    with pytest.raises(CommandError, match="Run the same command again"):
        move("s3")
    assert (texts(logged), names()) == before
    assert bucket.names() == []


@pytest.mark.django_db
def test_while_s3_is_away_nothing_moves_and_the_command_says_how_to_go_on(
    logged, unreachable_store, settings
) -> None:
    before, working = (texts(logged), names()), settings.STORAGES
    unreachable_store()
    with pytest.raises(CommandError, match="Run the same command again"):
        move("s3")
    assert (texts(logged), names()) == before
    settings.STORAGES = working
    assert "3 chunks moved" in move("s3")


@pytest.mark.django_db
def test_a_chunk_whose_blob_is_missing_is_reported_and_keeps_no_other_from_moving(
    logged, bucket, blob_store
) -> None:
    lost = LogChunk.objects.order_by("first_line")[1]
    (blob_store / lost.blob_name).unlink()
    with pytest.raises(CommandError, match="Of 1 chunks the blob is missing"):
        move("s3")
    lost.refresh_from_db()
    assert (lost.store, len(bucket.names())) == ("files", CHUNKS - 1)


@pytest.fixture
def stored(bucket, blob_store) -> Callable[[], tuple[int, int]]:
    """Count the blobs in files, and in S3."""
    return lambda: (len(files(blob_store)), len(bucket.names()))


@pytest.fixture
def points(tmp_path: Path) -> HeldPoints:
    return HeldPoints(tmp_path / "points")


@pytest.fixture
def mover(blob_store, bucket, points, redis_url) -> Iterator[subprocess.Popen[bytes]]:
    """Run `manage.py move_logs --to s3`, as a separate process on the test's database."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "move_logs", "--to", "s3"],
        cwd=CHECKOUT,
        env={
            **environment(blob_store.parent),
            **bucket.environment,
            "MPORTAL_CRASH_POINTS": str(points.directory),
        },
        stdout=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.wait()


@pytest.mark.timeout(400)
@pytest.mark.django_db(transaction=True)
@pytest.mark.feature("P3.3")
@pytest.mark.parametrize("point", ["move.copied", "move.switched"])
def test_a_move_that_is_killed_loses_nothing_and_is_finished_by_the_next(
    logged, stored, points, point, request, monkeypatch
) -> None:
    before = texts(logged)
    points.hold(point)
    mover = request.getfixturevalue("mover")
    assert points.wait_for(point, timeout_s=100) == mover.pid
    assert texts(logged) == before
    mover.kill()
    mover.wait()
    assert texts(logged) == before
    # In both places: the copy that no row names yet, or the original that none names any more.
    assert sum(stored()) == CHUNKS + 1
    points.let_go()
    monkeypatch.setattr(blobs, "UNTOUCHED_FOR", -blobs.UNTOUCHED_FOR)
    said = move("s3")
    assert "Left-overs of earlier moves removed: 1" in said
    assert stored() == (0, CHUNKS)
    assert texts(logged) == before


@pytest.mark.django_db
def test_the_young_copy_of_a_move_under_way_is_not_swept_up(logged, bucket) -> None:
    copy = blobs.write(logged.pk, 1, b"about to be named", copy_to="s3")
    assert moving.sweep_all() == 0
    assert bucket.names() == [f"{bucket.prefix}/{copy.name}"]
