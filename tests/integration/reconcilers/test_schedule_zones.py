"""A schedule whose time zone an update of the data removed: it reports that, and waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.actions.schedules.edit_schedules import ScheduleContent, change_schedule, resume_schedule
from jobs.admission.checked_spec import Source
from jobs.models import Job, Schedule
from jobs.permissions import Actor
from jobs.policies.timetables import ZoneGoneError
from tests.integration.api.conftest import caller_for
from tests.integration.reconcilers.test_schedules import (
    THREE,
    at,
    make,
    outcomes,
    quiet,
    tick,
)

__all__ = ["at", "make", "quiet"]  # fixtures
pytestmark = [pytest.mark.django_db, pytest.mark.feature("P9.2")]

GONE = "Mars/Olympus"
SAYS = f"The time zone {GONE} is not known here any more."


def stored(schedule: Schedule) -> Schedule:
    schedule.refresh_from_db()
    return schedule


def test_it_says_so_once_and_others_go_on(make, caplog):
    stuck, other = make(name="stuck", zone=GONE), make(name="other")
    for _ in range(3):
        tick()
    assert stored(stuck).message.startswith(f"Waits: {SAYS} Give the schedule another one")
    assert (stuck.next_at, outcomes(stuck)) == (THREE, [])
    assert outcomes(other) == [(THREE, "submitted")]
    reported = [each for each in caplog.records if "stuck" in each.getMessage()]
    assert [each.levelname for each in reported] == ["WARNING"]
    assert not any(each.exc_info for each in caplog.records)


def test_it_goes_on_when_the_zone_is_back(make):
    schedule = make(zone=GONE)
    tick()
    Schedule.objects.update(zone="UTC")  # as if the data were there again
    tick()
    assert (stored(schedule).message, outcomes(schedule)) == ("", [(THREE, "submitted")])


def test_it_goes_on_with_its_next_time_when_it_is_given_another_zone(make, at):
    schedule = make(zone=GONE)
    tick()
    source: Source | None = None
    change_schedule(Actor(schedule.owner), schedule, ScheduleContent(source, schedule.cron, "UTC"))
    assert (stored(schedule).message, schedule.next_at) == ("", THREE + timedelta(days=1))
    at(THREE + timedelta(days=1))
    tick()
    assert Job.objects.count() == 1


def test_a_paused_one_is_not_resumed_without_a_zone(make):
    schedule = make(zone=GONE, paused=True, next_at=None)
    with pytest.raises(ZoneGoneError, match=SAYS):
        resume_schedule(Actor(schedule.owner), schedule)
    assert stored(schedule).paused


@pytest.mark.parametrize("paused", [False, True])
def test_it_is_shown_with_the_reason_and_the_others_beside_it(make, paused):
    fields: dict[str, Any] = {"paused": True, "next_at": None} if paused else {}
    schedule = make(name="stuck", zone=GONE, **fields)
    other = make(name="other")
    rest = caller_for(schedule.owner)
    found = rest.get("/projects/rl/schedules").json()["results"]
    assert {row["name"]: SAYS in row["message"] for row in found} == {"stuck": True, "other": False}
    shown = rest.get("/projects/rl/schedules/stuck")
    assert (shown.status_code, shown.json()["upcoming"]) == (200, [])
    assert rest.get(f"/projects/rl/schedules/{other.name}").json()["upcoming"]
