"""Hints that the queue is to be planned: one for each pass, and none that a pass does not hear."""

from __future__ import annotations

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs import wakeups
from jobs.reconcilers import queue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake", "redis_client")]


@pytest.fixture
def sent(monkeypatch):
    """What was sent."""
    hints: list[tuple] = []
    monkeypatch.setattr(wakeups, "_send", lambda *hint: hints.append(hint))
    return hints


def test_until_a_pass_has_begun_it_is_asked_for_once(sent):
    for _ in range(3):
        wakeups.wake("queue")
    assert sent == [("queue", None)]


def test_what_comes_after_a_pass_has_begun_asks_for_another(sent):
    wakeups.wake("queue")
    queue.step()
    wakeups.wake("queue")
    assert len(sent) == 2


def test_nobody_waits_for_long_for_a_pass_whose_worker_died(sent):
    wakeups.wake("queue")
    left_ms = wakeups.connection().pttl(wakeups._asked("queue"))
    assert 0 < left_ms <= 2000


def test_hints_of_rows_are_all_sent(sent):
    wakeups.wake("running", 1)
    wakeups.wake("running", 1)
    assert len(sent) == 2


def test_without_redis_every_hint_is_sent(sent, monkeypatch):
    away = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    monkeypatch.setattr(wakeups, "connection", lambda: away)
    wakeups.wake("queue")
    wakeups.wake("queue")
    wakeups.hear_of_queue()
    assert len(sent) == 2
