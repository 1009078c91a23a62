"""A lock whose holder no signal handler interrupts."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any

# The module `signal` makes an enum of each handler, and takes ten times as long.
_signal: Any = importlib.import_module("_signal")
_handler_of = _signal.getsignal
# Numbers, as members of an enum take longer to convert.
_INT, _ALRM = int(signal.SIGINT), int(signal.SIGALRM)
_DEFERRED = _INT, _ALRM, int(signal.SIGTERM), int(signal.SIGUSR1), int(signal.SIGUSR2)
_Handler = Callable[[int, FrameType | None], Any]


class SignalDeferral:
    """The signals that arrive while the main thread changes the state of a context.

    Python runs handlers in the main thread. The program's handlers are replaced once, when the
    main thread first takes a lock, by one that runs them at once or, while it has a lock,
    remembers the signal: to replace them for each lock would take system calls each time. New
    handlers of SIGINT and SIGALRM are replaced by the next lock, and with them those of others.
    """

    __slots__ = ("_handler", "_handlers", "alarm", "arrived", "depth", "interrupt", "main")

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        # How many locks the main thread has.
        self.depth = 0
        self.arrived: list[int] = []
        self._handlers: dict[int, _Handler] = {}
        self._handler: _Handler = self.handle
        # Those of SIGINT and SIGALRM as they were last seen.
        self.interrupt: Any = None
        self.alarm: Any = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Run the program's handler of a signal, or remember the signal."""
        if self.depth:
            self.arrived.append(number)
        else:
            self._handlers[number](number, frame)

    def replace_handlers(self) -> None:
        """Replace the handlers that the program has set since. Called by the main thread."""
        for number in _DEFERRED:
            handler = _handler_of(number)
            if handler is not self._handler and callable(handler):
                self._handlers[number] = handler
                _signal.signal(number, self._handler)
        self.interrupt, self.alarm = _handler_of(_INT), _handler_of(_ALRM)

    def restore_handlers(self) -> None:
        """Give the program its handlers back. Only the main thread can."""
        if get_ident() == self.main:
            for number, handler in self._handlers.items():
                if _handler_of(number) is self._handler:
                    _signal.signal(number, handler)

    def forked(self) -> None:
        """Start anew in a fork that another thread made: there it is the main thread."""
        if get_ident() != self.main:
            self.main, self.depth, self.arrived = get_ident(), 0, []

    def run_arrived(self) -> None:
        """Run the handlers of the signals that have arrived: all, if some raise."""
        try:
            number = self.arrived.pop(0)
            self._handlers[number](number, sys._getframe())
        finally:
            if self.arrived:
                self.run_arrived()


# Handlers belong to the process, and so do their replacements.
DEFERRAL = SignalDeferral()
os.register_at_fork(after_in_child=DEFERRAL.forked)


class UninterruptedLock:
    """A reentrant lock. What a handler would raise must not leave half a change behind.

    Signals that arrive while the main thread has the lock are handled when it releases the lock.
    """

    __slots__ = ("_acquire", "_release", "plain")

    def __init__(self) -> None:
        # The same lock for threads that handlers never interrupt.
        self.plain = threading.RLock()
        self._acquire = self.plain.acquire
        self._release = self.plain.release

    def __enter__(self) -> None:
        deferral = DEFERRAL
        if get_ident() == deferral.main:
            if not deferral.depth and (
                _handler_of(_INT) is not deferral.interrupt
                or _handler_of(_ALRM) is not deferral.alarm
            ):
                deferral.replace_handlers()
            deferral.depth += 1
        self._acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()
        deferral = DEFERRAL
        if get_ident() == deferral.main:
            deferral.depth -= 1
            if deferral.arrived and not deferral.depth:
                deferral.run_arrived()
