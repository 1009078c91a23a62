"""One clock for all processes: the database's, whatever their own ones say."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest

from jobs.ground import clock
from jobs.ground.clock import DatabaseClock, Reading

MINUTES = timedelta(minutes=5)


class Steady:
    """The clocks of this process, moved by hand: the steady one, and the one that can be set."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.own = datetime(2030, 1, 1, tzinfo=timezone.utc)

    def passes(self, seconds: float) -> None:
        self.at += seconds
        self.own += timedelta(seconds=seconds)


class Database:
    """A database that answers with its own time, as fast as a test says."""

    def __init__(self, steady: Steady, ahead: timedelta) -> None:
        self.steady, self.ahead = steady, ahead
        self.trip_s = 0.01
        self.away = False
        self.requested = 0

    def __call__(self) -> Reading | None:
        self.requested += 1
        if self.away:
            return None
        return Reading(self.now(), self.steady.at, self.steady.own, self.trip_s)

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=timezone.utc) + self.ahead + self._passed()

    def _passed(self) -> timedelta:
        return timedelta(seconds=self.steady.at - 1000.0)


@pytest.fixture
def steady(monkeypatch):
    steady = Steady()
    monkeypatch.setattr(time, "monotonic", lambda: steady.at)
    monkeypatch.setattr(clock.timezone, "now", lambda: steady.own)
    return steady


@pytest.mark.parametrize("ahead", [-MINUTES, timedelta(0), MINUTES])
def test_the_database_reports_the_time_and_is_queried_once_a_minute(steady, ahead):
    database = Database(steady, ahead)
    one = DatabaseClock(database)
    for _ in range(119):
        assert one.now() == database.now()
        steady.passes(0.5)
    assert database.requested == 1
    steady.passes(2)
    assert one.now() == database.now()
    assert database.requested == 2


def test_a_clock_set_while_the_process_runs_moves_nothing(steady):
    database = Database(steady, timedelta(0))
    one = DatabaseClock(database)
    before = one.now()
    steady.own += MINUTES
    assert one.now() == before


def test_a_machine_that_slept_asks_again_at_once(steady):
    # Its steady clock stood still meanwhile.
    database = Database(steady, timedelta(0))
    one = DatabaseClock(database)
    one.now()
    steady.passes(clock.LOOK_AGAIN_S)
    steady.own += timedelta(hours=8)
    database.ahead += timedelta(hours=8)
    assert one.now() == database.now()


def test_without_the_database_the_last_reading_goes_on(steady):
    database = Database(steady, MINUTES)
    one = DatabaseClock(database)
    one.now()
    database.away = True
    steady.passes(600)
    assert one.now() == database.now()
    steady.passes(1)
    one.now()
    assert database.requested == 2


def test_a_slow_answer_is_not_taken_over_a_quick_one(steady):
    database = Database(steady, timedelta(0))
    one = DatabaseClock(database)
    one.now()
    database.ahead, database.trip_s = MINUTES, 3.0
    steady.passes(clock.MEASURED_EVERY_S)
    assert one.now() == database.now() - MINUTES
    database.trip_s = 0.01
    steady.passes(clock.LOOK_AGAIN_S)
    assert one.now() == database.now()


def test_before_the_database_was_ever_heard_the_own_clock_must_do(steady):
    database = Database(steady, MINUTES)
    database.away = True
    assert DatabaseClock(database).now() == steady.own
