"""Sealing: which tails are due, and that a crash at any moment loses and doubles nothing."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from jobs.logs import blobs, sealing
from jobs.logs.deletion import delete_log
from jobs.logs.reading import read_lines
from jobs.logs.stores import Blob
from jobs.models import Attempt, LogBlock, LogChunk, LogHead
from tests.frame_bytes import frame, lines
from tests.integration.logs.log_texts import end, texts


def files(store: Path) -> list[str]:
    return sorted(path.name for path in store.rglob("*.zst"))


@pytest.fixture
def full(attempt: Attempt, post) -> Attempt:
    """Create an open attempt with a little more than one chunk in its tail."""
    for seq in range(1, 40):
        post(frame(seq, text=f"{seq} " + "x" * 30_000))
    return attempt


@pytest.mark.django_db
def test_only_full_old_or_ended_tails_are_due(attempt, post) -> None:
    assert sealing.due() == []
    post(frame(1))
    assert sealing.due() == []
    assert sealing.seal(attempt.pk) == 0
    LogBlock.objects.update(created_at=timezone.now() - timedelta(hours=13))
    assert sealing.due() == [attempt.pk]
    assert sealing.seal(attempt.pk) == 1
    post(frame(2))
    assert sealing.due() == []
    end(attempt)
    assert sealing.due() == [attempt.pk]
    assert sealing.seal(attempt.pk) == 1
    assert sealing.due() == []
    assert texts(attempt) == ["r0 s1", "r0 s2"]


@pytest.mark.django_db
def test_a_full_tail_becomes_one_compressed_chunk_and_the_rest_stays(full, blob_store) -> None:
    assert sealing.due() == [full.pk]
    before = read_lines(full.pk)
    assert sealing.seal(full.pk) == 1
    chunk = LogChunk.objects.get()
    head = LogHead.objects.get(pk=full.pk)
    assert chunk.raw_bytes >= sealing.CHUNK_BYTES
    assert chunk.stored_bytes < chunk.raw_bytes / 20
    assert (chunk.first_line, chunk.line_count) == (1, head.sealed_before - 1)
    assert (chunk.first_at, chunk.last_at) == (before[0].at, before[chunk.line_count - 1].at)
    assert head.tail_bytes == sum(block.raw_bytes for block in LogBlock.objects.all())
    assert 0 < head.tail_bytes < sealing.CHUNK_BYTES
    assert read_lines(full.pk) == before
    assert sealing.seal(full.pk) == 0
    assert len(files(blob_store)) == 1


@pytest.mark.django_db
def test_the_rest_is_sealed_when_the_attempt_has_ended_and_late_lines_too(full, post) -> None:
    end(full)
    assert sealing.seal(full.pk) == 2
    post(frame(40, text="late"))
    assert sealing.due() == [full.pk]
    assert sealing.seal(full.pk) == 1
    assert LogBlock.objects.count() == 0
    assert texts(full)[-1] == "late"
    assert len(texts(full)) == 40


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["blobs.write", "LogChunk.save", "LogHead.save"])
def test_a_crash_between_blob_and_row_leaves_nothing_wrong(
    full, blob_store, monkeypatch, place
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    before = texts(full)
    with monkeypatch.context() as patch:
        if place == "blobs.write":  # killed with half a blob on the disk
            patch.setattr(blobs, "_flush", die)
        else:
            patch.setattr(f"jobs.models.{place}", die)
        with pytest.raises(Killed):
            sealing.seal(full.pk)
    assert len(files(blob_store)) == 1
    assert LogChunk.objects.count() == 0
    assert texts(full) == before

    assert sealing.seal(full.pk) == 1
    assert texts(full) == before
    end(full)
    sealing.seal(full.pk)
    assert texts(full) == before
    assert files(blob_store) == sorted(
        name.rpartition("/")[2] for name in LogChunk.objects.values_list("blob_name", flat=True)
    )


@pytest.mark.django_db
def test_the_second_sealer_changes_nothing_and_removes_its_blob(
    full, blob_store, monkeypatch
) -> None:
    before = texts(full)
    write = blobs.write
    rivals = iter([True])

    def write_after_a_rival(attempt_id: int, first_line: int, payload: bytes) -> Blob:
        name = write(attempt_id, first_line, payload)
        if next(rivals, False):
            assert sealing.seal(full.pk) == 1
        return name

    monkeypatch.setattr(blobs, "write", write_after_a_rival)
    assert sealing.seal(full.pk) == 0
    assert LogChunk.objects.count() == 1
    assert len(files(blob_store)) == 1
    assert texts(full) == before


@pytest.mark.django_db(transaction=True)
def test_lines_that_come_while_a_chunk_is_written_stay_in_the_tail(full, post, monkeypatch) -> None:
    write = blobs.write

    def post_one(seq: int) -> None:
        try:
            post(frame(seq))
        finally:
            connection.close()

    def write_while_lines_come(attempt_id: int, first_line: int, payload: bytes) -> Blob:
        seq = LogHead.objects.get(pk=attempt_id).acked["0"] + 1
        poster = threading.Thread(target=post_one, args=(seq,))
        poster.start()
        poster.join(30)
        return write(attempt_id, first_line, payload)

    monkeypatch.setattr(blobs, "write", write_while_lines_come)
    assert sealing.seal(full.pk) == 1
    assert texts(full)[-1] == "r0 s40"
    assert len(texts(full)) == 40


@pytest.mark.django_db(transaction=True)
def test_a_deleted_log_leaves_no_row_and_no_blob_and_numbers_go_on(full, post, blob_store) -> None:
    sealing.seal(full.pk)
    blobs.write(full.pk, 1, b"left by a crash")
    delete_log(full)
    assert texts(full) == []
    assert (LogBlock.objects.count(), LogChunk.objects.count()) == (0, 0)
    assert list(blob_store.rglob("*.zst")) == []
    assert not (blob_store / "logs" / str(full.pk)).exists()
    assert post(*lines(39, 41)) == {"0": 41}
    assert [line.number for line in read_lines(full.pk)] == [40, 41]
    end(full)
    assert sealing.seal(full.pk) == 1
    assert texts(full) == ["r0 s40", "r0 s41"]


@pytest.mark.django_db
def test_sealing_a_log_that_is_gone_does_nothing() -> None:
    assert sealing.seal(1) == 0
