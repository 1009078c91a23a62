"""The clean-up of what this process started, however the process ends. Nothing helps on SIGKILL.

`ending` and `arm` register what to do at a normal end, an exception, sys.exit, and at SIGINT,
SIGTERM and SIGHUP where the program does not handle them itself. SIGTERM and SIGHUP leave the
program as sys.exit does, so that all `finally` and `with` blocks run. What must not be cut off by
a second signal is in a block of `undisturbed`: the request that starts a job, and the one that
ends it. Standard library, since programs on nodes use it too.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
DELAYED = (signal.SIGINT, *SIGNALS)
IMPATIENT = 3
# A closed terminal and timeout(1) send one request as two signals.
SAME_REQUEST_S = 1.0

_ends: dict[int, Callable[[], None]] = {}
# What is done in the signal's handler, by programs that the signal then ends at once.
_last_acts: dict[int, Callable[[], None]] = {}
_taken: dict[int, Any] = {}
_pid = 0
_is_command = False
_left_at: float | None = None
_left_for = 0


def arm(key: object, end: Callable[[], None]) -> None:
    """Call `end` when this process ends, unless `disarm` comes first. Not in its forks."""
    _begin()
    _ends[id(key)] = end
    # What is registered later runs earlier: before the end of what the program uses, such as
    # Monarch's client.
    atexit.unregister(_end_all)
    atexit.register(_end_all)


def arm_last_act(key: object, act: Callable[[], None]) -> None:
    """Call `act` at SIGTERM and SIGHUP alone, whose usual effect follows at once.

    For programs whose `finally` blocks would take longer than the signal's sender waits.
    """
    _begin()
    _last_acts[id(key)] = act


def disarm(key: object) -> None:
    """Forget the clean-up of `key`: it has ended, or may stay."""
    _ends.pop(id(key), None)
    _last_acts.pop(id(key), None)
    is_done = not _ends and not _last_acts and _left_at is None
    if is_done and threading.current_thread() is threading.main_thread():
        for number in list(_taken):
            if signal.getsignal(number) is _leave:
                signal.signal(number, _taken[number])
            del _taken[number]


@contextmanager
def ending(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` once, undisturbed, when the block is left or this process ends."""
    arm(end, end)
    try:
        yield
    finally:
        with undisturbed():
            end()
            disarm(end)


def leave_on_signals() -> None:
    """Leave this process, a command, as sys.exit does at SIGTERM and SIGHUP, until its end."""
    global _is_command  # noqa: PLW0603 - one process, one way to end
    _is_command = True
    _begin()


def leave_again() -> None:
    """Leave this process if a signal has requested that, and something has caught SystemExit."""
    if _left_at is not None and _pid == os.getpid():
        sys.exit(128 + _left_for)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay signals that would end the program until the block is left, except the third."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, float]] = []

    def note(number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if arrived and number in SIGNALS and now - arrived[-1][1] < SAME_REQUEST_S:
            return
        arrived.append((number, now))
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
        if _ends or _last_acts:
            _begin()  # something may have been armed in the block
        # Also if the block has failed: what catches its error must not go on.
        for late, _ in arrived[:1]:
            os.kill(os.getpid(), late)


def _begin() -> None:
    """Register this process, and take the signals that have no handler."""
    global _pid, _left_at
    if _pid != os.getpid():
        _ends.clear()
        _last_acts.clear()
        _pid, _left_at = os.getpid(), None
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                _taken[number] = signal.signal(number, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    global _left_at, _left_for
    if os.getpid() == _pid:
        now = time.monotonic()
        if _left_at is not None and now - _left_at < SAME_REQUEST_S:
            return
        for act in list(_last_acts.values()):
            act()
        if _ends or _is_command or _left_at is not None:
            _left_at, _left_for = now, number
            # Every `finally` and `with` is left, then _end_all runs.
            sys.exit(128 + number)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_all() -> None:
    if os.getpid() != _pid:
        return
    for end in list(_ends.values()):
        try:
            end()
        except Exception as error:  # noqa: BLE001, PERF203 - the others are ended as well
            sys.stderr.write(f"{error}\n")
        except BaseException:  # noqa: BLE001, S112 - one more signal
            continue
