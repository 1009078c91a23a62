"""Moving sealed chunks from one store to the other, while the portal runs.

For each: copy, compare, let its row name the copy, remove the original. Readers follow the
row, and read it again when a blob has been removed; so a crash leaves every chunk readable.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from jobs.errors import LogStoreAwayError
from jobs.logs import blobs, stores
from jobs.logs.stores import Blob
from jobs.models import LogChunk
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 200


class CopyDiffersError(Exception):
    """The copy that was read back differs from what was written."""


@dataclass
class Moved:
    """The progress of a move. `missing`: chunks whose blob is not where their row says."""

    chunks: int = 0
    stored_bytes: int = 0
    missing: int = 0


def waiting(to: str) -> int:
    """Count the chunks in other stores."""
    return LogChunk.objects.exclude(store=to).count()


def move_all(to: str) -> Iterator[Moved]:
    """Move every chunk that is in another store, and yield the progress.

    LogStoreAwayError, CopyDiffersError: it stops there, and goes on when it is begun again.
    """
    done, last = Moved(), 0
    while chunks := _behind(last, to):
        for chunk in chunks:
            last = chunk.pk
            try:
                is_moved = move_chunk(chunk, to)
            except FileNotFoundError:
                done.missing += LogChunk.objects.filter(pk=chunk.pk, store=chunk.store).count()
                context = {"action": "log_moved", "attempt": chunk.attempt_id}
                log.warning("no blob %s", chunk.blob_name, extra=context)
                continue
            if is_moved:
                done.chunks += 1
                done.stored_bytes += chunk.stored_bytes
            yield done
    yield done


def move_chunk(chunk: LogChunk, to: str) -> bool:
    """Move one chunk; False if it was removed, or moved by another process, meanwhile."""
    old = Blob(chunk.store, chunk.blob_name)
    payload = stores.read(old)
    copy = blobs.write(chunk.attempt_id, chunk.first_line, payload, copy_to=to)
    if _digest(stores.read(copy)) != _digest(payload):
        blobs.delete(copy)
        raise CopyDiffersError(f"{copy.name} came back from {to} as something else.")
    reach("move.copied")
    rows = LogChunk.objects.filter(pk=chunk.pk, store=old.store, blob_name=old.name)
    if not rows.update(store=copy.store, blob_name=copy.name):
        blobs.delete(copy)
        return False
    reach("move.switched")
    # The next move sweeps up what cannot be removed now.
    with suppress(LogStoreAwayError):
        blobs.delete(old)
    return True


def sweep_all() -> int:
    """Remove what moves that were cut short have left behind, in every store; how much it was."""
    return sum(
        blobs.sweep(attempt_id, store)
        for store in stores.configured()
        for attempt_id in blobs.attempts_with_blobs(store)
    )


def _behind(last: int, to: str) -> list[LogChunk]:
    rows = LogChunk.objects.exclude(store=to).filter(pk__gt=last)
    return list(rows.order_by("pk")[:_ROWS_AT_ONCE])


def _digest(payload: bytes) -> tuple[int, bytes]:
    return len(payload), hashlib.sha256(payload).digest()
