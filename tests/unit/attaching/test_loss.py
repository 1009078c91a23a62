"""The alarm's restraint: it interrupts waiting for Monarch alone, and takes nothing for good."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from types import ModuleType

import pytest

from monarch_client.attaching import loss
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


def test_the_cell_of_a_notebook_is_interrupted_and_its_kernel_is_not(alarm, monkeypatch) -> None:
    monkeypatch.setattr(loss, "EVERY_S", 0.05)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    raised: list[Exception] = []

    def run_cell() -> None:
        try:
            wait_in("monarch._src.actor.future", threading.Event())
        except SessionLostError as error:
            raised.append(error)

    async def kernel() -> None:
        """Run two cells in the main thread, and wait for the user between them, as ipykernel."""
        lost = SessionLostError("away", away_s=301)
        alarm.report(lost)
        loop = asyncio.get_running_loop()
        for _ in range(2):
            loop.call_soon(run_cell)
            # Longer than the alarm waits before it interrupts again.
            await asyncio.sleep(0.1)
        assert raised == [lost, lost]

    asyncio.run(kernel())


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
