"""Ticks: what beat sends, and which reconcilers a worker then runs."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest
from celery import Celery

from jobs import tasks
from jobs.background import ticks
from jobs.reconcilers import running
from jobs.statuses import JobStatus
from monarch_portal.celery_settings import broker_url
from tests.factories import make_job


@pytest.fixture
def scheduler(redis_client, redis_url):
    """Yield Beat's scheduler on a real broker without a worker."""
    real = Celery("ticks", set_as_current=False)
    real.conf.update(broker_url=broker_url(redis_url), task_default_queue="mportal")
    real.conf.beat_schedule = ticks.beat_schedule()
    yield ticks.BoundedScheduler(app=real, lazy=False)
    real.close()


@pytest.fixture
def send(scheduler):
    """Return a function that sends tick `number`, by default the turn of every reconciler."""

    def send_tick(number: int = 600) -> None:
        entry = scheduler.schedule["tick"]
        entry.total_run_count = number - 1
        scheduler.apply_entry(entry)

    return send_tick


@pytest.fixture
def hints(monkeypatch) -> list[str]:
    """Return the list of the reconcilers that get a hint."""
    found: list[str] = []
    monkeypatch.setattr(tasks, "wake", found.append)
    return found


def test_ticks_that_are_not_taken_do_not_pile_up(send, redis_client):
    """Queue ticks as if the worker was away for an hour: few messages wait, not thousands."""
    for number in range(3600):
        send(number)
    assert redis_client.llen("mportal") == ticks.MAX_WAITING
    redis_client.ltrim("mportal", ticks.MAX_WAITING // 2, -1)
    send()
    assert redis_client.llen("mportal") == ticks.MAX_WAITING // 2 + 1


def test_a_message_names_the_reconcilers_and_no_time_of_day(send, redis_client):
    send()
    message = json.loads(redis_client.lindex("mportal", 0))
    assert (message["headers"]["eta"], message["headers"]["expires"]) == (None, None)
    args, _, _ = json.loads(b64decode(message["body"]))
    assert args == [list(ticks.INTERVALS_S)]


def test_beat_sends_nothing_when_it_is_no_reconcilers_turn(send, redis_client):
    send(1)
    assert redis_client.llen("mportal") == 0


def test_beat_waits_until_the_next_tick_without_a_busy_loop(scheduler):
    assert scheduler.adjust(0.005) == 0.005


@pytest.mark.django_db
def test_a_tick_of_an_idle_portal_runs_only_the_rare_sweeps(hints):
    tasks.tick(list(ticks.INTERVALS_S))
    assert hints == ["orphans", "retention"]


@pytest.mark.django_db
def test_a_tick_runs_the_reconcilers_that_have_work(hints):
    make_job(status=JobStatus.STOPPING)
    make_job()
    tasks.tick(["queue", "running", "stopping", "teardown"])
    assert hints == ["queue", "stopping"]


@pytest.mark.django_db
def test_a_reconciler_that_fails_keeps_no_other_from_its_turn(hints, monkeypatch, caplog):
    def fail() -> list[int]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(running, "due", fail)
    make_job(status=JobStatus.STOPPING)
    tasks.tick(["running", "stopping"])
    assert hints == ["stopping"]
    assert [record.of for record in caplog.records] == ["running"]
