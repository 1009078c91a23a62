"""Frames that the portal has fetched itself, from a disk or by a carrier: stored like others."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.errors import InvalidFrameError, PortalError
from jobs.models import Attempt

log = logging.getLogger(__name__)

_BATCH_BYTES = 512 * 1024
# A reader may be waiting for the first of them.
_BATCH_S = 0.5


def batches(frames: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield `frames` in batches that can be stored at once.

    An empty frame says that none came for a moment: what there is makes a run, even if it is none.
    """
    batch: list[bytes] = []
    size, began_at = 0, time.monotonic()
    for frame in frames:
        if not batch:
            size, began_at = 0, time.monotonic()
        if frame:
            batch.append(frame.rstrip(b"\n"))
            size += len(frame)
        if not frame or size >= _BATCH_BYTES or time.monotonic() - began_at > _BATCH_S:
            yield batch
            batch = []
    if batch:
        yield batch


def store_batch(attempt: Attempt, batch: list[bytes]) -> None:
    """Store frames that are not acknowledged yet; frames known already are skipped.

    A frame cut in half by a crash costs itself, not those around it: the verdict may be among them.
    """
    try:
        _store(attempt, batch)
    except InvalidFrameError:
        for frame in batch:
            _store_alone(attempt, frame)
    except PortalError as error:
        _warn(attempt, error)


def _store_alone(attempt: Attempt, frame: bytes) -> None:
    try:
        _store(attempt, [frame])
    except PortalError as error:
        _warn(attempt, error)


def _store(attempt: Attempt, batch: list[bytes]) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, b"\n".join(batch))


def _warn(attempt: Attempt, error: PortalError) -> None:
    context = {"action": "store_frames", "attempt": attempt.pk}
    log.warning("frames not stored: %s", error, extra=context)
