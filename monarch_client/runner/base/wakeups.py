"""End a thread's wait by a call from another thread or by a signal, without a race.

Python runs the handler of a signal between two steps of the main thread. One that comes after the
last such moment and before the wait is only noted, and so is one that another thread gets: the main
thread would sleep on, for as long as it meant to. The descriptor of `signal.set_wakeup_fd` is
written by the interpreter's own handler, at once, and ends the wait.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Iterator

_MUCH = 4096
# poll(2) takes no more than 24 days.
_LONGEST_WAIT_S = 24 * 3600.0


class Wakeups:
    """A pipe to one waiting thread."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)
            weakref.finalize(self, os.close, end)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)

    def wake(self) -> None:
        """End the present wait, or the next one. Safe from threads and signal handlers."""
        # A full pipe wakes as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b"\0")

    def wait(self, seconds: float | None) -> None:
        """Return when woken, or after `seconds`; a very long wait may end before."""
        longest = _LONGEST_WAIT_S if seconds is None else min(seconds, _LONGEST_WAIT_S)
        # In whole milliseconds, and never a little too early: it would be called in a circle.
        if self._poll.poll(math.ceil(longest * 1000)):
            with contextlib.suppress(BlockingIOError):
                os.read(self._reading, _MUCH)

    @contextlib.contextmanager
    def by_signals(self) -> Iterator[None]:
        """Have each signal with a handler of Python's wake as well, if this is the main thread.

        Others never run a handler and have nothing to wake up for.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
