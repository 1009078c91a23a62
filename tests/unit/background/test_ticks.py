"""The ticks that find what no hint reported."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import get_args

from jobs import tasks
from jobs.background.hints import Reconciler
from jobs.background.ticks import INTERVALS_S, TICK, TICK_S, names_at, steady_now
from monarch_portal.celery import app


def test_every_reconciler_has_a_task_and_a_turn():
    assert tasks.__doc__  # imported: that registers them
    names = set(get_args(Reconciler))
    assert {name for name in app.tasks if name.startswith("jobs.")} == {
        TICK,
        *(f"jobs.{name}" for name in names),
    }
    assert set(INTERVALS_S) == names


def test_each_reconciler_has_its_turn_once_in_its_interval():
    ticks = range(1, max(INTERVALS_S.values()) // TICK_S + 1)
    turns = Counter(name for number in ticks for name in names_at(number))
    assert turns == {name: len(ticks) * TICK_S // s for name, s in INTERVALS_S.items()}


def test_no_tick_carries_a_time_that_a_workers_clock_would_have_to_agree_with():
    for entry in app.conf.beat_schedule.values():
        assert not {"expires", "eta", "countdown"} & entry.get("options", {}).keys()


def test_ticks_go_on_when_the_clock_is_set(time_machine):
    entry = app.conf.beat_schedule["tick"]["schedule"]
    before = steady_now()
    time_machine.move_to(datetime.now(timezone.utc) - timedelta(minutes=5))
    assert entry.is_due(before - timedelta(seconds=TICK_S)).is_due
