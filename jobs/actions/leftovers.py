"""Frames that a dead runner left on its disk: stored like any others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from jobs.actions.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.base import ComputeBackend
from jobs.errors import InvalidFrameError, PortalError
from jobs.models import Attempt

log = logging.getLogger(__name__)

_BATCH_BYTES = 512 * 1024


def ingest_leftovers(attempt: Attempt, backend: ComputeBackend) -> None:
    """Store what nobody has acknowledged yet. Frames known already are skipped."""
    if attempt.cluster is None:
        return
    token = attempt_token(attempt.job_id, attempt.number)
    for batch in _batches(backend.leftovers(attempt.cluster.name).frames):
        try:
            ingest_frames(attempt.pk, token, b"\n".join(batch))
        except InvalidFrameError:
            _one_by_one(attempt, token, batch)
        except PortalError as error:
            # Nothing that is wrong with a dead runner's disk may keep its attempt from ending.
            _warn(attempt, error)
            return


def _one_by_one(attempt: Attempt, token: str, batch: list[bytes]) -> None:
    """A frame cut in half by a crash costs itself, not those around it: the verdict may follow."""
    for frame in batch:
        try:
            ingest_frames(attempt.pk, token, frame)
        except PortalError as error:  # noqa: PERF203 - each frame is tried by itself
            _warn(attempt, error)


def _warn(attempt: Attempt, error: PortalError) -> None:
    context = {"action": "leftovers", "attempt": attempt.pk}
    log.warning("leftovers not stored: %s", error, extra=context)


def _batches(frames: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for frame in frames:
        batch.append(frame.rstrip(b"\n"))
        size += len(frame)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
