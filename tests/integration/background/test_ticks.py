"""Ticks while no worker takes them."""

from __future__ import annotations

import json

import pytest
from celery import Celery

from jobs.background import ticks
from monarch_portal.celery_settings import broker_url


@pytest.fixture
def scheduler(redis_client, redis_url):
    """Yield Beat's scheduler on a real broker without a worker."""
    real = Celery("ticks", set_as_current=False)
    real.conf.update(broker_url=broker_url(redis_url), task_default_queue="mportal")
    real.conf.beat_schedule = ticks.beat_schedule()
    yield ticks.BoundedScheduler(app=real, lazy=False)
    real.close()


def test_ticks_that_nobody_takes_do_not_pile_up(scheduler, redis_client):
    """Queue ticks as if the worker was away for an hour: few messages wait, not thousands."""
    for _ in range(3600):
        scheduler.apply_entry(scheduler.schedule["jobs.running"])
    assert redis_client.llen("mportal") == ticks.MAX_WAITING
    redis_client.ltrim("mportal", ticks.MAX_WAITING // 2, -1)
    scheduler.apply_entry(scheduler.schedule["jobs.running"])
    assert redis_client.llen("mportal") == ticks.MAX_WAITING // 2 + 1


def test_a_message_names_no_time_of_day(scheduler, redis_client):
    scheduler.apply_entry(scheduler.schedule["jobs.queue"])
    headers = json.loads(redis_client.lindex("mportal", 0))["headers"]
    assert (headers["eta"], headers["expires"]) == (None, None)
