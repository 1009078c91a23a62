"""The ticks that find what no hint reported."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import get_args

from jobs import tasks
from jobs.background.hints import Reconciler
from jobs.background.ticks import steady_now
from monarch_portal.celery import app


def test_every_reconciler_has_a_task_and_a_tick():
    assert tasks.__doc__  # imported: that registers them
    names = {f"jobs.{name}" for name in get_args(Reconciler)}
    assert {name for name in app.tasks if name.startswith("jobs.")} == names
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} == names


def test_no_tick_carries_a_time_that_a_workers_clock_would_have_to_agree_with():
    for entry in app.conf.beat_schedule.values():
        assert not {"expires", "eta", "countdown"} & entry.get("options", {}).keys()


def test_ticks_go_on_when_somebody_sets_the_clock(time_machine):
    entry = app.conf.beat_schedule["jobs.queue"]["schedule"]
    before = steady_now()
    time_machine.move_to(datetime.now(timezone.utc) - timedelta(minutes=5))
    assert entry.is_due(before - timedelta(seconds=2)).is_due
