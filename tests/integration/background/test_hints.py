"""Hints: one of the queue for each pass, delayed ones once, and none that fails its sender."""

from __future__ import annotations

import logging
import os
import time

import pytest
import redis
from celery import Celery
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.background import hints
from monarch_portal.celery_settings import broker_url
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis_client")


@pytest.fixture
def sent(monkeypatch):
    """Record what was sent."""
    found: list[tuple] = []
    monkeypatch.setattr(hints, "_send", lambda *hint: found.append(hint))
    return found


@pytest.fixture
def no_redis(monkeypatch):
    away = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    monkeypatch.setattr(hints, "connection", lambda: away)


def test_until_a_pass_has_begun_it_is_requested_once(sent):
    for _ in range(3):
        hints.wake("queue")
    assert sent == [("queue", None)]


def test_no_job_waits_long_for_a_pass_whose_worker_died(sent):
    hints.wake("queue")
    left_ms = hints.connection().pttl(hints._key("queue"))
    assert 0 < left_ms <= 2000


def test_hints_of_rows_are_all_sent(sent):
    hints.wake("running", 1)
    hints.wake("running", 1)
    assert len(sent) == 2


@pytest.mark.usefixtures("no_redis")
def test_without_redis_every_hint_is_sent(sent):
    hints.wake("queue")
    hints.wake("queue")
    hints.begin_queue_pass()
    hints.wake_later("running", 1, delay_s=0)
    hints.wake_later("running", 1, delay_s=0)
    assert eventually(lambda: len(sent) == 4)


def test_delayed_hints_are_sent_in_the_order_of_their_times_and_not_before(sent):
    begin = time.monotonic()
    hints.wake_later("running", 1, delay_s=0.2)
    hints.wake_later("stopping", 2, delay_s=0.05)
    assert eventually(lambda: len(sent) == 2)
    assert time.monotonic() - begin >= 0.2
    assert sent == [("stopping", 2), ("running", 1)]


def test_of_delayed_hints_of_one_row_one_is_sent_for_each_reason(sent):
    for _ in range(3):
        hints.wake_later("recovering", 1, delay_s=0.1)
        hints.wake_later("recovering", 1, delay_s=0.15, why="back-off")
        hints.wake_later("recovering", 2, delay_s=0.2)
    assert eventually(lambda: ("recovering", 2) in sent)
    assert sent == [("recovering", 1), ("recovering", 1), ("recovering", 2)]


def test_a_delayed_hint_that_fails_does_not_keep_the_next_from_its_turn(monkeypatch, caplog):
    sent: list[tuple] = []
    monkeypatch.setattr(hints, "_send", lambda *_: 1 / 0)
    hints.wake_later("running", 1, delay_s=0)
    assert eventually(lambda: "ZeroDivisionError" in caplog.text)
    monkeypatch.setattr(hints, "_send", lambda *hint: sent.append(hint))
    hints.wake_later("running", 2, delay_s=0)
    assert eventually(lambda: sent == [("running", 2)])


def test_a_fork_sends_its_own_delayed_hints(sent):
    hints.wake_later("running", 1, delay_s=0)
    assert eventually(lambda: sent == [("running", 1)])
    if (pid := os.fork()) == 0:
        hints.wake_later("running", 2, delay_s=0)
        os._exit(0 if eventually(lambda: len(sent) == 2) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_redis_that_is_full_fails_no_sender(redis_client, redis_url, monkeypatch, caplog):
    app = Celery("full", broker=broker_url(redis_url), set_as_current=False)
    monkeypatch.setattr(hints, "current_app", app)
    redis_client.config_set("maxmemory", 1)
    try:
        with caplog.at_level(logging.WARNING):
            hints.wake("running", 1)
    finally:
        redis_client.config_set("maxmemory", 0)
        app.close()
    assert "hint not sent" in caplog.text


def test_redis_keeps_nothing_of_a_hint_that_a_worker_has_taken(redis_client, redis_url, settings):
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    with Connection(broker_url(redis_url), transport_options=options) as link:
        hint_queue = link.SimpleQueue("taken")
        hint_queue.put({"a": 1})
        assert redis_client.llen("taken") == 1
        message = hint_queue.get(timeout=5)
        assert not redis_client.exists("taken", "unacked", "unacked_index")
        message.ack()
        hint_queue.put({"a": 2})
        hint_queue.get(timeout=5)
        hint_queue.close()
        link.default_channel.close()
        assert redis_client.llen("taken") == 1, "what was not done when a worker ends goes back"
