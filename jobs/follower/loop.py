"""The follower's life: every other second a cheap look at what there is to follow, until it ends.

Each attempt whose frames have to be fetched gets a thread (`pull`) in one of the followers, which
holds a lease on it (`leases`). Beside that it takes daily care of the log tail's table.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
from collections.abc import Callable
from datetime import date

from django.db import DatabaseError, connections

from jobs.backends import registry
from jobs.follower import leases
from jobs.follower.pull import PullCarrier
from jobs.ground import clock
from jobs.logs import partitions

log = logging.getLogger(__name__)

LOOK_S = 2.0
# The attempts that one process follows at once; further ones are for the next follower.
MOST_CARRIERS = 100
# Includes threads that hang in a backend's answer: they do no work, and can't be ended.
MOST_THREADS = 300
# How long threads may take to store what they have fetched, when the follower ends.
_PATIENCE_S = 5.0
_STOPPING = (signal.SIGTERM, signal.SIGINT)


class FollowerLoop:
    """The loop of the follower process, in its main thread."""

    def __init__(self) -> None:
        self._owner = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._carriers: dict[int, PullCarrier] = {}
        self._cared_for: date | None = None

    @property
    def carried(self) -> set[int]:
        """The attempts that this process reads."""
        return set(self._carriers)

    def run(self) -> None:
        """Repeat rounds until SIGTERM or SIGINT; then release the attempts to other followers."""
        # The signals are blocked and polled: a handler could interrupt any statement.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        while True:
            self.look()
            if signal.sigtimedwait(_STOPPING, LOOK_S) is not None:
                self.end()
                return

    def look(self) -> None:
        """Run one round. If the database is unavailable, the next round tries again."""
        self._attempt(self._follow)
        self._attempt(self._care)

    def end(self) -> None:
        """Stop every carrier and give the leases back."""
        for carrier in self._carriers.values():
            carrier.stop()
        for carrier in self._carriers.values():
            carrier.join(_PATIENCE_S)
        self._attempt(lambda: leases.release(self._carriers, self._owner))

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except DatabaseError as error:
            log.warning("database away: %s", error, extra={"action": "follower_look"})
        finally:
            connections.close_all()

    def _follow(self) -> None:
        carriers = {name: backend.carrier for name, backend in registry.pulling().items()}
        if not carriers:
            return
        self._keep()
        backends = leases.Backends(
            pulled=[name for name, carrier in carriers.items() if carrier == "pull"],
            either=[name for name, carrier in carriers.items() if carrier == "either"],
        )
        for attempt_id in leases.free(backends, self._room(), besides=self._carriers):
            if leases.take(attempt_id, self._owner):
                carrier = self._carriers[attempt_id] = PullCarrier(attempt_id)
                carrier.start()

    def _room(self) -> int:
        """Return how many more attempts this process may carry; stuck carriers do not count."""
        stuck = sum(each.is_stuck for each in self._carriers.values())
        working = len(self._carriers) - stuck
        return max(0, min(MOST_CARRIERS - working, MOST_THREADS - len(self._carriers)))

    def _keep(self) -> None:
        """Renew the leases of carriers that do their work, and release the others."""
        alive = {pk for pk, each in self._carriers.items() if each.is_alive()}
        stuck = {pk for pk in alive if self._carriers[pk].is_stuck}
        leases.release(set(self._carriers) - alive | stuck, self._owner)
        kept = leases.renew(alive - stuck, self._owner)
        # An expired lease may be another follower's now. A stream may outlast its use.
        for attempt_id in alive - (kept & leases.wanted(kept)):
            self._carriers[attempt_id].stop()
        self._carriers = {pk: self._carriers[pk] for pk in alive}

    def _care(self) -> None:
        today = clock.now().date()
        if self._cared_for != today:
            partitions.ensure()
            self._cared_for = today
