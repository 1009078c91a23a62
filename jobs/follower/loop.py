"""The follower's life: a slow, cheap look at what there is to follow, until it is told to stop.

Pull carriers (one thread each) read frames where nodes cannot reach the portal. No backend has one
so far; what is done meanwhile is the daily care of the log tail's table.
"""

from __future__ import annotations

import logging
import signal
from datetime import date, datetime, timezone

from django.db import DatabaseError, connections

from jobs.logs import partitions

log = logging.getLogger(__name__)

LOOK_S = 60.0
_STOPPING = (signal.SIGTERM, signal.SIGINT)


class FollowerLoop:
    """Runs in the main thread of a process of its own."""

    def __init__(self) -> None:
        self._cared_for: date | None = None

    def run(self) -> None:
        """Look now and then until SIGTERM or SIGINT."""
        # Blocked and asked for: a handler could come in the middle of anything.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        while True:
            self.look()
            if signal.sigtimedwait(_STOPPING, LOOK_S) is not None:
                return

    def look(self) -> None:
        """One look. A database that is away is tried again at the next."""
        today = datetime.now(timezone.utc).date()
        if self._cared_for == today:
            return
        try:
            partitions.ensure()
            self._cared_for = today
        except DatabaseError as error:
            log.warning("database away: %s", error, extra={"action": "follower_look"})
        finally:
            connections.close_all()
