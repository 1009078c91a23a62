"""The clean-up before this process ends, however it ends, of what it must not leave behind.

At a normal end, an exception, sys.exit, and at SIGINT, SIGTERM and SIGHUP where the program does
not handle them itself. Nothing helps against SIGKILL.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
DELAYED = (signal.SIGINT, *SIGNALS)
IMPATIENT = 3

_ends: dict[int, Callable[[], None]] = {}
_taken: dict[int, Any] = {}
_pid = 0


def arm(key: object, end: Callable[[], None]) -> None:
    """Call `end` when this process ends, unless `disarm` comes first. Not in its forks."""
    global _pid  # noqa: PLW0603 - one process, one list
    if _pid != os.getpid():
        _ends.clear()
        _pid = os.getpid()
        atexit.register(_end_all)
    _ends[id(key)] = end
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                _taken[number] = signal.signal(number, _leave)


def disarm(key: object) -> None:
    """Forget the clean-up of `key`: it has ended, or may stay."""
    _ends.pop(id(key), None)
    if not _ends and threading.current_thread() is threading.main_thread():
        for number in list(_taken):
            if signal.getsignal(number) is _leave:
                signal.signal(number, _taken[number])
            del _taken[number]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay signals that would end the program until the block is left, except the third."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)
        if len(arrived) == IMPATIENT:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, note)
        for number in DELAYED
        if signal.getsignal(number) not in {signal.SIG_IGN, None}
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for late in arrived[:1]:
        os.kill(os.getpid(), late)


def _leave(number: int, _frame: FrameType | None) -> None:
    # Every `finally` and `with` is left, then _end_all runs.
    sys.exit(128 + number)


def _end_all() -> None:
    if os.getpid() != _pid:
        return
    for end in list(_ends.values()):
        try:
            end()
        except Exception as error:  # noqa: BLE001, PERF203 - the others are ended as well
            sys.stderr.write(f"{error}\n")
