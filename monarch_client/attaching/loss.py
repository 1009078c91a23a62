"""The end of waiting for workers that do not come back.

Monarch has no error for it: a call to workers that cannot be reached waits for ever. A signal
interrupts the main thread where it waits, as Ctrl-C does, and its handler raises the error.
"""

from __future__ import annotations

import atexit
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

log = logging.getLogger(__name__)

# Ignored by default, also by a process that this one starts, and by no program used.
SIGNAL = signal.SIGURG
EVERY_S = 0.5


class LossAlarm:
    """A reporter of one loss to the main thread. Made there; `close` restores what it changed.

    An error interrupts the program only where it waits for Monarch (or sleeps in asyncio), so that
    its other work is not torn. Other threads cannot be interrupted; the log has the error.
    """

    def __init__(self) -> None:
        self._error: Exception | None = None
        self._is_closed = threading.Event()
        self._former: object = None
        self._is_armed = threading.current_thread() is threading.main_thread()
        global _latest  # noqa: PLW0603 - Monarch has one client a process
        _latest = self
        if self._is_armed:
            self._former = signal.signal(SIGNAL, self._handle)
            # Before Monarch's own end, which may wait for workers that are lost.
            atexit.register(self.close)

    @property
    def error(self) -> Exception | None:
        """The loss that was reported."""
        return self._error

    @property
    def is_over(self) -> bool:
        """Whether the way to the workers was lost, or is no longer watched."""
        return self._error is not None or self._is_closed.is_set()

    def report(self, error: Exception) -> None:
        """Raise `error` from now on wherever the main thread waits for Monarch.

        Called from any thread.
        """
        if self._error is not None or self._is_closed.is_set():
            return
        self._error = error
        log.error("%s", error)
        if self._is_armed:
            threading.Thread(target=self._repeat, daemon=True, name="loss").start()

    def close(self) -> None:
        """Raise nothing any more."""
        self._is_closed.set()
        atexit.unregister(self.close)
        in_main = threading.current_thread() is threading.main_thread()
        if self._is_armed and in_main and signal.getsignal(SIGNAL) == self._handle:
            signal.signal(SIGNAL, self._former)  # type: ignore[arg-type]

    def _repeat(self) -> None:
        main = threading.main_thread().ident
        while main is not None and not self._is_closed.is_set():
            if is_waiting(sys._current_frames().get(main)):
                signal.pthread_kill(main, SIGNAL)
            self._is_closed.wait(EVERY_S)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        error = self._error
        if error is not None and not self._is_closed.is_set() and is_waiting(frame):
            # The same error at each wait, without the frames of the former ones.
            raise error.with_traceback(None)
        if callable(self._former):
            self._former(number, frame)


_latest: LossAlarm | None = None


def current_alarm() -> LossAlarm | None:
    """Return the alarm of the workers to which this process is attached; None: it is not."""
    return None if _latest is None or _latest.is_over else _latest


def is_waiting(frame: FrameType | None) -> bool:
    """Whether a thread at `frame` waits for Monarch, or for any event of asyncio's.

    The loop of a notebook's kernel waits for the user: an error there would end the kernel.
    """
    modules = list(_modules(frame))
    if any(name.partition(".")[0] == "monarch" for name in modules):
        return True
    is_idle = modules[:1] == ["selectors"] and "asyncio.base_events" in modules
    return is_idle and "ipykernel" not in sys.modules


def _modules(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
