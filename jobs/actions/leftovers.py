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
    """Store what nobody has acknowledged yet. Frames known already are skipped."""
    if attempt.cluster is None:
        return
    token = attempt_token(attempt.job_id, attempt.number)
    try:
        for batch in _batches(backend.leftovers(attempt.cluster.name).frames):
            ingest_frames(attempt.pk, token, batch)
    except PortalError as error:
        # A half-written last frame must not keep the attempt from ending.
        log.warning(
            "leftovers not stored: %s", error, extra={"action": "leftovers", "attempt": attempt.pk}
        )


def _batches(frames: Iterable[bytes]) -> Iterator[bytes]:
    batch: list[bytes] = []
    size = 0
    for frame in frames:
        batch.append(frame.rstrip(b"\n"))
        size += len(frame)
        if size >= _BATCH_BYTES:
            yield b"\n".join(batch)
            batch, size = [], 0
    if batch:
        yield b"\n".join(batch)
