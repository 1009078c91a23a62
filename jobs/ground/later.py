"""Calls that are made a while later, by this process's steady clock, in one thread for all.

A process that dies forgets them: only for what a tick of beat finds as well.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import time
from collections.abc import Callable
from threading import Condition, Thread

log = logging.getLogger(__name__)

# More would be a flood: those that are dropped cost a tick each.
MOST_WAITING = 10_000


class Later:
    """Calls in the order of their times. They must not take long."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = Condition()
        self._pid = 0

    def call(self, delay_s: float, what: Callable[[], None]) -> None:
        """Call `what` after `delay_s` seconds."""
        with self._changed:
            self._begin()
            if len(self._calls) < MOST_WAITING:
                at = time.monotonic() + delay_s
                heapq.heappush(self._calls, (at, next(self._numbers), what))
                self._changed.notify()

    def _begin(self) -> None:
        """Have a thread; one that was started before a fork stayed behind."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            Thread(target=self._run, name="later", daemon=True).start()

    def _run(self) -> None:
        while True:
            what = self._next()
            try:
                what()
            except Exception:
                log.exception("a later call failed", extra={"action": "later"})

    def _next(self) -> Callable[[], None]:
        with self._changed:
            while (rest_s := self._rest_s()) is None or rest_s > 0:
                self._changed.wait(rest_s)
            return heapq.heappop(self._calls)[2]

    def _rest_s(self) -> float | None:
        """Until the first call; None while there is none."""
        return self._calls[0][0] - time.monotonic() if self._calls else None
