"""The alarm's restraint: it interrupts waiting for Monarch alone, and takes nothing for good."""

from __future__ import annotations

import signal
import threading

import pytest

from monarch_client.attaching.errors import SessionLostError
from monarch_client.attaching.loss import SIGNAL, LossAlarm


@pytest.fixture
def alarm():
    alarm = LossAlarm()
    yield alarm
    alarm.close()


def wait_in(module: str, event: threading.Event) -> None:
    """Wait for an event in code of `module`."""
    code = "while not event.wait(0.01): pass"
    exec(compile(code, module, "exec"), {"__name__": module, "event": event})


def test_waiting_for_monarch_is_interrupted_each_time_and_other_work_is_not(alarm) -> None:
    lost = SessionLostError("away", away_s=301)
    threading.Timer(0.1, alarm.report, [lost]).start()
    for _ in range(2):
        with pytest.raises(SessionLostError) as caught:
            wait_in("monarch._src.actor.future", threading.Event())
        assert caught.value is lost
    done = threading.Event()
    threading.Timer(1.2, done.set).start()
    wait_in("numpy", done)


def test_only_the_first_loss_is_reported(alarm) -> None:
    first = SessionLostError("first")
    alarm.report(first)
    alarm.report(SessionLostError("second"))
    assert alarm.error is first


def test_a_handler_of_the_programs_own_is_called_and_restored() -> None:
    seen: list[int] = []
    before = signal.signal(SIGNAL, lambda number, _frame: seen.append(number))
    try:
        mine = signal.getsignal(SIGNAL)
        alarm = LossAlarm()
        signal.raise_signal(SIGNAL)
        alarm.close()
        assert (seen, signal.getsignal(SIGNAL)) == ([SIGNAL], mine)
    finally:
        signal.signal(SIGNAL, before)


def test_after_close_nothing_is_raised(alarm) -> None:
    alarm.close()
    alarm.report(SessionLostError())
    assert alarm.error is None
