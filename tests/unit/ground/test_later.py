"""Calls made a while later, in this process."""

from __future__ import annotations

import os
import time
from threading import Event

from jobs.ground import later
from jobs.ground.later import Later


def test_calls_come_in_the_order_of_their_times_and_not_before():
    calls, done = [], Event()
    queue = Later()
    begin = time.monotonic()
    queue.call(0.2, lambda: (calls.append("late"), done.set()))
    queue.call(0.05, lambda: calls.append("early"))
    assert done.wait(10)
    assert calls == ["early", "late"]
    assert time.monotonic() - begin >= 0.2


def test_a_call_that_fails_does_not_keep_the_next_from_its_turn(caplog):
    done = Event()
    queue = Later()
    queue.call(0.0, lambda: 1 / 0)
    queue.call(0.01, done.set)
    assert done.wait(10)
    assert "a later call failed" in caplog.text


def test_a_flood_is_dropped(monkeypatch):
    monkeypatch.setattr(later, "MOST_WAITING", 2)
    queue = Later()
    for _ in range(5):
        queue.call(60, lambda: None)
    assert len(queue._calls) == 2


def test_a_fork_has_a_thread_of_its_own():
    queue, done = Later(), Event()
    queue.call(0.0, done.set)
    assert done.wait(10)
    if (pid := os.fork()) == 0:
        called = Event()
        queue.call(0.0, called.set)
        os._exit(0 if called.wait(10) else 1)
    assert os.waitpid(pid, 0)[1] == 0
