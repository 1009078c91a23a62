"""A log of millions of lines in seconds: its sealed chunks are written as sealing leaves them."""

from __future__ import annotations

from collections.abc import Mapping

import zstandard

from jobs.logs import blobs
from jobs.logs.lines import encoded, moment_of
from jobs.models import Attempt, LogChunk, LogHead

LINES_A_CHUNK = 20_000
_AT_MS = 1_700_000_000_000
# Where the chunk's own digits go: no line has these letters.
_DIGITS = "PART"


def text_of(number: int) -> str:
    """Return the text of line `number`, unless a test sets another."""
    return f"step {number // LINES_A_CHUNK:04d}{number % LINES_A_CHUNK:05d} of rank {number % 2}"


def write_large_log(attempt: Attempt, count: int, said: Mapping[int, str]) -> None:
    """Write `count` sealed lines, alternating two ranks; line `number` is `said[number]`, if any.

    `count` is a multiple of LINES_A_CHUNK, less one. The attempt has no log before; it may go on.
    """
    assert (count + 1) % LINES_A_CHUNK == 0
    pattern = b"\n".join(
        _stored(number, text_of(number).replace("0000", _DIGITS, 1))
        for number in range(LINES_A_CHUNK)
    )
    chunks = []
    for part in range((count + 1) // LINES_A_CHUNK):
        begin = part * LINES_A_CHUNK
        raw = pattern.replace(_DIGITS.encode(), b"%04d" % part)
        if own := {at: text for at, text in said.items() if 0 <= at - begin < LINES_A_CHUNK}:
            lines = raw.split(b"\n")
            for number, text in own.items():
                lines[number - begin] = _stored(number, text)
            raw = b"\n".join(lines)
        # Lines count from 1.
        raw = raw if part else raw.partition(b"\n")[2]
        chunks.append(_chunk(attempt, max(begin, 1), raw))
    LogChunk.objects.bulk_create(chunks)
    size = sum(chunk.raw_bytes for chunk in chunks)
    end = count + 1
    LogHead.objects.filter(pk=attempt.pk).update(next_line=end, sealed_before=end, raw_bytes=size)


def _stored(number: int, text: str) -> bytes:
    return encoded(number % 2, "stdout", _AT_MS, text).encode()


def _chunk(attempt: Attempt, first_line: int, raw: bytes) -> LogChunk:
    payload = zstandard.compress(raw, 1)
    blob = blobs.write(attempt.pk, first_line, payload)
    return LogChunk(
        attempt=attempt,
        first_line=first_line,
        line_count=raw.count(b"\n") + 1,
        first_at=moment_of(_AT_MS),
        last_at=moment_of(_AT_MS),
        store=blob.store,
        blob_name=blob.name,
        raw_bytes=len(raw) + 1,
        stored_bytes=len(payload),
    )
