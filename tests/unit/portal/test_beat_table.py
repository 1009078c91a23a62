"""The ticks that find what no hint told of."""

from __future__ import annotations

from typing import get_args

from jobs import tasks, wakeups
from monarch_portal.celery import app


def test_every_tick_names_a_task_that_exists():
    assert tasks.__doc__  # imported: that registers them
    names = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert names <= set(app.tasks)


def test_every_reconciler_that_gets_hints_also_gets_ticks():
    assert {f"jobs.{name}" for name in get_args(wakeups.Reconciler)} <= set(app.conf.beat_schedule)


def test_a_tick_expires_before_the_next_so_that_no_backlog_grows():
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]
