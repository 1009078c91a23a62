from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.wakeups import Wakeups


@pytest.fixture
def on_signal() -> Iterator[list[int]]:
    """Install a handler of SIGUSR1; return the signals that it got."""
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    yield seen
    signal.signal(signal.SIGUSR1, before)


def signal_from_aside(delay_s: float) -> threading.Timer:
    """Send SIGUSR1 so that the interpreter notes it without interrupting the main thread's wait."""
    timer = threading.Timer(
        delay_s, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    )
    timer.start()
    return timer


def test_calls_are_made_in_order_on_the_loops_thread() -> None:
    loop, seen = MainLoop(), []

    def call(name: str) -> None:
        seen.append((name, threading.get_ident()))

    def post_all() -> None:
        loop.post(lambda: call("a"))
        loop.post(lambda: call("b"))
        loop.post(loop.stop)

    threading.Thread(target=post_all).start()
    loop.run()
    assert seen == [("a", threading.get_ident()), ("b", threading.get_ident())]


def test_timers_fire_by_time_and_not_when_cancelled() -> None:
    loop, seen = MainLoop(), []
    loop.call_later(0.02, loop.stop)
    loop.call_later(0.01, lambda: seen.append("second"))
    loop.call_later(0.0, lambda: seen.append("first"))
    loop.call_later(0.0, lambda: seen.append("never")).cancel()
    loop.run()
    assert seen == ["first", "second"]


def test_a_call_made_by_a_call_is_made_too() -> None:
    loop, seen = MainLoop(), []

    def inner() -> None:
        seen.append("inner")
        loop.stop()

    loop.post(lambda: loop.post(inner))
    loop.run()
    assert seen == ["inner"]


@pytest.mark.parametrize("timers", [0, 1])
def test_a_signal_that_does_not_interrupt_the_wait_ends_it_all_the_same(timers: int) -> None:
    loop = MainLoop()
    for _ in range(timers):
        loop.call_later(3600, loop.stop)
    before = signal.signal(signal.SIGUSR1, lambda *_: loop.post(loop.stop))
    try:
        sender = signal_from_aside(0.05)
        loop.run()
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_wait_ends_by_a_signal_that_came_before_it(on_signal: list[int]) -> None:
    wakeups = Wakeups()
    with wakeups.by_signals():
        signal_from_aside(0).join()
        wakeups.wait(None)
    assert on_signal == [signal.SIGUSR1]


def test_a_wait_ends_by_itself_when_its_time_is_over() -> None:
    wakeups = Wakeups()
    wakeups.wake()
    wakeups.wait(3600)
    wakeups.wait(0.01)


def test_what_wakes_goes_with_who_waited(on_signal: list[int]) -> None:
    before = signal.set_wakeup_fd(-1)
    try:
        with Wakeups().by_signals():
            pass
        assert signal.set_wakeup_fd(before) == -1
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.set_wakeup_fd(before)
    assert on_signal == [signal.SIGUSR1]
