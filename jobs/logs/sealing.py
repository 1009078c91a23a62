"""Sealing: full tails become compressed chunks in the blob store, and their rows are deleted.

A chunk counts from the moment its row is committed; in the same transaction its lines leave the
tail. A blob written before a crash has no row, so it is never read; it is swept up later.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import connection, transaction

from jobs.errors import LogStoreAwayError
from jobs.ground import clock
from jobs.logs import blobs, stores
from jobs.logs.lines import compressed_for_good, decompressed, moment_of
from jobs.models import Attempt, LogBlock, LogChunk, LogHead
from monarch_client.crash_points import reach

CHUNK_BYTES = 1024 * 1024
# A slow log is sealed all the same, so that the days of the tail empty themselves.
OLDEST_TAIL = timedelta(hours=12)
# Blocks of one line each would fill memory before they fill a chunk.
_MOST_BLOCKS = 20_000

# The time of each stored line (see `jobs.logs.lines`) that follows a newline: what begins with a
# letter is found far quicker than what begins with a line.
_STAMP = re.compile(rb"\n\d+ [a-zA-Z](\d+) ")

# Attempts with a tail, found with one look into the index for each, however long the tails are.
_DUE = """
WITH RECURSIVE tails AS (
    SELECT min(attempt_id) AS id FROM jobs_logblock
    UNION ALL
    SELECT (SELECT min(attempt_id) FROM jobs_logblock WHERE attempt_id > tails.id)
    FROM tails WHERE tails.id IS NOT NULL
)
SELECT tails.id
FROM tails
JOIN jobs_loghead AS head ON head.attempt_id = tails.id
JOIN jobs_attempt AS attempt ON attempt.id = tails.id
WHERE head.tail_bytes >= %(full)s
   OR attempt.ended_at IS NOT NULL
   OR EXISTS (
        SELECT FROM jobs_logblock AS block
        WHERE block.attempt_id = tails.id AND block.first_line = head.sealed_before
          AND block.created_at < %(old)s)
"""


def due() -> list[int]:
    """List the attempts with a full tail, with an old one, or, if they have ended, with any."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"full": CHUNK_BYTES, "old": clock.now() - OLDEST_TAIL})
        return [attempt_id for (attempt_id,) in cursor.fetchall()]


def seal(attempt_id: int) -> int:
    """Seal what is due of one attempt; how many chunks were made. Safe to repeat.

    LogStoreAwayError: what was not sealed stays in the tail, where it can be read.
    Two at once do no harm: each line gets into one chunk, and the loser removes its blob.
    """
    chunks = 0
    while (run := _due_run(attempt_id)) and _seal_run(attempt_id, run):
        chunks += 1
    if chunks and _has_ended(attempt_id):
        # All is sealed: what it could not sweep up now goes with the log itself.
        with suppress(LogStoreAwayError):
            blobs.sweep(attempt_id, stores.for_new_chunks())
    return chunks


def _due_run(attempt_id: int) -> list[LogBlock]:
    """Return the next blocks to make one chunk of, or none."""
    head = LogHead.objects.filter(pk=attempt_id).first()
    if head is None:
        return []
    tail = LogBlock.objects.filter(attempt_id=attempt_id, first_line__gte=head.sealed_before)
    run: list[LogBlock] = []
    raw_bytes = 0
    for block in tail.order_by("first_line")[:_MOST_BLOCKS]:
        run.append(block)
        raw_bytes += block.raw_bytes
        if raw_bytes >= CHUNK_BYTES:
            return run
    if len(run) == _MOST_BLOCKS:
        return run
    return run if run and (_is_old(run[0].created_at) or _has_ended(attempt_id)) else []


def _seal_run(attempt_id: int, run: list[LogBlock]) -> bool:
    """Make one chunk of `run`; False if another process was first."""
    raw = b"\n".join(decompressed(bytes(block.payload)) for block in run)
    payload = compressed_for_good(raw)
    # No transaction is open here: a blob store may be far away.
    blob = blobs.write(attempt_id, run[0].first_line, payload)
    chunk = LogChunk(
        attempt_id=attempt_id,
        first_line=run[0].first_line,
        line_count=sum(block.line_count for block in run),
        store=blob.store,
        blob_name=blob.name,
        raw_bytes=len(raw) + 1,
        stored_bytes=len(payload),
    )
    chunk.first_at, chunk.last_at = _times(raw)
    reach("seal.written")
    if _commit(chunk):
        return True
    blobs.delete(blob)
    return False


@transaction.atomic
def _commit(chunk: LogChunk) -> bool:
    """Let `chunk` take the place of its lines in the tail, unless it has been taken already."""
    heads = LogHead.objects.select_for_update(no_key=True)
    head = heads.filter(pk=chunk.attempt_id, sealed_before=chunk.first_line).first()
    if head is None:
        return False
    end = chunk.first_line + chunk.line_count
    chunk.save(force_insert=True)
    LogBlock.objects.filter(
        attempt_id=chunk.attempt_id, first_line__gte=chunk.first_line, first_line__lt=end
    ).delete()
    head.sealed_before = end
    head.tail_bytes -= chunk.raw_bytes
    head.save(update_fields=["sealed_before", "tail_bytes"])
    return True


def _times(raw: bytes) -> tuple[datetime, datetime]:
    """Return the earliest and the latest time among stored lines: clocks of ranks differ."""
    # Lines that came together mostly have one time.
    stamps = [int(stamp) for stamp in set(_STAMP.findall(b"\n" + raw))]
    return moment_of(min(stamps)), moment_of(max(stamps))


def _is_old(moment: datetime) -> bool:
    return moment < clock.now() - OLDEST_TAIL


def _has_ended(attempt_id: int) -> bool:
    return Attempt.objects.filter(pk=attempt_id, ended_at__isnull=False).exists()
