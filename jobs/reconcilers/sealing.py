"""Seal log tails into compressed chunks (see `jobs.logs.sealing`).

While the store of chunks is unavailable, tails grow in the database and stay readable.
"""

from __future__ import annotations

import logging
from time import monotonic

from jobs.background.exclusive import LockSpace, exclusive
from jobs.errors import LogStoreAwayError
from jobs.logs import sealing

log = logging.getLogger(__name__)

# An unavailable store is not queried for every due attempt: each query takes seconds.
REST_S = 30.0


class Rest:
    """The pause of this process before it queries the store again."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self) -> None:
        """Begin a pause."""
        self._until = monotonic() + REST_S

    def end(self) -> None:
        """End the pause."""
        self._until = 0.0

    @property
    def is_on(self) -> bool:
        """Whether this process pauses now."""
        return monotonic() < self._until


REST = Rest()


def due() -> list[int]:
    """Return attempts with enough tail to seal, and ended ones with any."""
    return [] if REST.is_on else list(sealing.due())


def step(attempt_id: int) -> None:
    """Seal the due lines of one attempt. Safe to repeat; a crash loses nothing."""
    if REST.is_on:
        return
    with exclusive(LockSpace.ATTEMPT_LOG, attempt_id) as alone:
        if alone:
            _seal(attempt_id)


def _seal(attempt_id: int) -> None:
    try:
        sealing.seal(attempt_id)
    except LogStoreAwayError:
        REST.begin()
        context = {"action": "sealing_waits", "attempt": attempt_id}
        log.warning("sealing waits for the log store; nothing is lost", extra=context)
