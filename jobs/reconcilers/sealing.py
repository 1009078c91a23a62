"""Seals log tails into compressed chunks (see `jobs.logs.sealing`).

While the store of the chunks is away tails grow in the database, where everybody reads them.
"""

from __future__ import annotations

import logging
from time import monotonic

from jobs.background.exclusive import LockSpace, exclusive
from jobs.errors import LogStoreAwayError
from jobs.logs import sealing

log = logging.getLogger(__name__)

# A store that is away is not asked for every attempt that is due: each answer takes seconds.
REST_S = 30.0


class Rest:
    """Until when this process leaves the store alone."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self) -> None:
        """Leave it alone for a while."""
        self._until = monotonic() + REST_S

    def end(self) -> None:
        """Ask it again at once."""
        self._until = 0.0

    @property
    def is_on(self) -> bool:
        """Whether it is left alone now."""
        return monotonic() < self._until


REST = Rest()


def due() -> list[int]:
    """Attempts with enough tail to seal, or an ended one with any."""
    return [] if REST.is_on else list(sealing.due())


def step(attempt_id: int) -> None:
    """Seal what is due of one attempt. Safe to repeat; a crash loses nothing."""
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
