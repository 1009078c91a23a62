"""Frames that a dead runner left on its disk: stored like any others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from jobs.actions.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.base import ComputeBackend
from jobs.errors import PortalError
from jobs.models import Attempt

log = logging.getLogger(__name__)

_BATCH_BYTES = 512 * 1024


def ingest_leftovers(attempt: Attempt, backend: ComputeBackend) -> None:
    """Store what nobody has acknowledged yet. Frames known already are skipped.

    Nothing that is wrong with a dead runner's disk keeps its attempt from ending.
    """
    if attempt.cluster is None:
        return
    for batch in _batches(backend.leftovers(attempt.cluster.name).frames):
        if not _store(attempt, batch):
            # A frame cut in half by a crash costs itself, not those around it: the verdict may
            # be among them.
            for frame in batch:
                _store(attempt, [frame])


def _store(attempt: Attempt, batch: list[bytes]) -> bool:
    """Whether the frames could be stored; none of them is otherwise."""
    token = attempt_token(attempt.job_id, attempt.number)
    try:
        ingest_frames(attempt.pk, token, b"\n".join(batch))
    except PortalError as error:
        _warn(attempt, error)
        return False
    return True


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
