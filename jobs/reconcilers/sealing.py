"""Seals log tails into compressed chunks (see `jobs.logs.sealing`)."""

from __future__ import annotations

from jobs.logs import sealing
from jobs.reconcilers.exclusive import LockSpace, exclusive


def due() -> list[int]:
    """Attempts with enough tail to seal, or an ended one with any."""
    return list(sealing.due())


def step(attempt_id: int) -> None:
    """Seal what is due of one attempt. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.ATTEMPT_LOG, attempt_id) as alone:
        if alone:
            sealing.seal(attempt_id)
