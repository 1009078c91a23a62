"""The runner's main loop: one thread changes all state, and the others post calls to it.

It knows calls and times, nothing of jobs.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from typing import TYPE_CHECKING

from monarch_client.runner.base.wakeups import Wakeups

if TYPE_CHECKING:
    from typing import Callable


class Timer:
    """A call planned for later."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Make sure the call does not happen, or not again."""
        self.cancelled = True

    def fire(self) -> None:
        """Make the call, unless it was cancelled."""
        if not self.cancelled:
            self._call()


class MainLoop:
    """A loop that makes posted calls in order, and timed ones when they are due."""

    def __init__(self) -> None:
        # Takes calls from signal handlers as well, whose own thread may hold any lock.
        self._calls: deque[Callable[[], None]] = deque()
        self._wakeups = Wakeups()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._running = False

    def post(self, call: Callable[[], None]) -> None:
        """Have `call` made on the loop's thread. Safe from threads and signal handlers."""
        self._calls.append(call)
        self._wakeups.wake()

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Plan `call`; only on the loop's own thread."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def run(self) -> None:
        """Run calls until `stop`."""
        self._running = True
        with self._wakeups.by_signals():
            while self._running:
                self._fire_due_timers()
                if self._calls:
                    self._calls.popleft()()
                else:
                    self._wakeups.wait(self._seconds_to_next_timer())

    def stop(self) -> None:
        """Let `run` return after the present call. From other threads: post it."""
        self._running = False

    def _seconds_to_next_timer(self) -> float | None:
        if not self._running:
            return 0.0
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _fire_due_timers(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2].fire()
