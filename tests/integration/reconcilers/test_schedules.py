"""Due schedules: submitted once, by their policies, in their owner's name."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

import pytest
from django.db import connection

from jobs.actions.schedules.edit_schedules import ScheduleContent, change_schedule
from jobs.actions.schedules.run_schedule import run_due
from jobs.errors import BackendUnavailableError, StorageFullError
from jobs.models import Job, Membership, Schedule, ScheduleRun
from jobs.permissions import Actor
from jobs.reconcilers import retention, schedules
from jobs.statuses import JobStatus, Role
from tests.factories import make_job, make_member, make_schedule, make_spec

pytestmark = pytest.mark.django_db
THREE = datetime(2026, 7, 1, 3, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Send no hint to the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def at(time_machine):
    """Return a function that sets the clock."""
    return lambda moment: time_machine.move_to(moment, tick=False)


@pytest.fixture
def make(project, at):
    """Return a function that makes a schedule whose first time is THREE, a second ago."""
    at(THREE + timedelta(seconds=1))
    return lambda **fields: make_schedule(project, **{"next_at": THREE, **fields})


def tick() -> None:
    for schedule_id in schedules.due():
        schedules.step(schedule_id)


def outcomes(schedule: Schedule) -> list[tuple[datetime, str]]:
    return list(schedule.runs.order_by("slot").values_list("slot", "outcome"))


def end(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(status=JobStatus.SUCCEEDED, ended_at=THREE)


@pytest.mark.feature("P9.2")
def test_at_its_time_a_schedule_submits_its_job_once(make, at):
    schedule = make(zone="Europe/Berlin", cron="0 5 * * *")
    tick()
    tick()
    job = Job.objects.get()
    assert (job.submitted_by, job.spec_source) == (schedule.owner, schedule.spec_source)
    event = job.events.get()
    said = "Submitted by schedule nightly, for 2026-07-01 05:00 Europe/Berlin"
    assert (event.message, event.source) == (said, "schedule nightly")
    assert outcomes(schedule) == [(THREE, "submitted")]
    schedule.refresh_from_db()
    assert schedule.next_at == THREE + DAY
    at(THREE + DAY - timedelta(seconds=1))
    tick()
    assert Job.objects.count() == 1


def test_nothing_is_submitted_before_the_time_or_while_paused(make):
    make(next_at=THREE + HOUR)
    make(name="paused", paused=True, next_at=None)
    tick()
    assert not Job.objects.exists()


@pytest.mark.feature("P9.2")
def test_with_skip_a_time_is_left_out_while_a_job_has_not_ended(make, at):
    schedule = make(overlap="skip")
    tick()
    at(THREE + DAY)
    tick()
    job = Job.objects.get()
    run = schedule.runs.get(slot=THREE + DAY)
    assert (run.outcome, run.message) == ("skipped", f"Job {job.pk} had not ended (QUEUED).")
    end(job)
    at(THREE + 2 * DAY)
    tick()
    assert Job.objects.count() == 2


@pytest.mark.feature("P9.2")
def test_with_allow_jobs_run_side_by_side(make, at):
    make(overlap="allow")
    tick()
    at(THREE + DAY)
    tick()
    assert Job.objects.unfinished().count() == 2


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize(
    ("status", "after"),
    [(JobStatus.QUEUED, JobStatus.CANCELLED), (JobStatus.RUNNING, JobStatus.STOPPING)],
)
def test_with_replace_the_job_before_is_cancelled(make, at, status, after):
    make(overlap="replace")
    tick()
    first = Job.objects.get()
    Job.objects.update(status=status)
    at(THREE + DAY)
    tick()
    first.refresh_from_db()
    assert (first.status, first.stop_reason) == (after, "CANCELLED_BY_USER")
    assert first.message == "Replaced: schedule nightly runs again, for 2026-07-02 03:00 UTC."
    assert Job.objects.in_status(JobStatus.QUEUED).count() == 1


def test_jobs_of_others_do_not_stand_in_its_way(make, project):
    make_job(project)
    make_schedule(project, "other").runs.create(
        slot=THREE, outcome="submitted", job=make_job(project)
    )
    schedule = make()
    tick()
    assert outcomes(schedule) == [(THREE, "submitted")]


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("none", [(0, "missed")]),
        ("latest", [(0, "missed"), (4, "submitted")]),
        ("all", [(n, "submitted") for n in range(5)]),
    ],
)
def test_after_an_outage_it_catches_up_by_its_policy(make, at, catch_up, expected):
    schedule = make(cron="@hourly", catch_up=catch_up, overlap="allow")
    at(THREE + 4.5 * HOUR)
    tick()
    tick()
    assert outcomes(schedule) == [(THREE + n * HOUR, outcome) for n, outcome in expected]
    schedule.refresh_from_db()
    assert schedule.next_at == THREE + 5 * HOUR
    if catch_up == "latest":
        message = schedule.runs.get(outcome="missed").message
        assert message.startswith("Missed 4 times, the last time for 2026-07-01 06:00 UTC")


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize("leaves", ["membership", "account", "role"])
def test_one_whose_owner_has_left_is_paused_with_the_reason_and_nothing_is_lost(make, leaves):
    schedule = make()
    memberships = Membership.objects.filter(user=schedule.owner)
    if leaves == "membership":
        memberships.delete()
    elif leaves == "role":
        memberships.update(role=Role.VIEWER)
    else:
        type(schedule.owner).objects.filter(pk=schedule.owner_id).update(is_active=False)
    tick()
    assert not Job.objects.exists()
    schedule.refresh_from_db()
    assert (schedule.paused, schedule.next_at) == (True, None)
    assert schedule.owner.get_username() in schedule.message
    assert outcomes(schedule) == [(THREE, "failed")]


def test_an_administrator_who_is_none_any_more_gives_no_more_than_they_have(make, project):
    owner = make_member(project, is_superuser=True)
    schedule = make(owner=owner, spec={**make_spec(), "config": {"docker": {"run_options": []}}})
    type(owner).objects.update(is_superuser=False)
    tick()
    assert not Job.objects.exists()
    schedule.refresh_from_db()
    assert not schedule.paused
    assert "can't be submitted" in schedule.message


@pytest.mark.feature("P9.2")
def test_one_whose_job_fits_no_more_says_so_and_goes_on_with_its_next_time(make, at):
    schedule = make(spec=make_spec(secrets={"A": "A"}))
    tick()
    schedule.refresh_from_db()
    assert schedule.next_at == THREE + DAY
    assert "names a secret" in schedule.message
    assert outcomes(schedule) == [(THREE, "failed")]
    Schedule.objects.update(spec=make_spec())
    at(THREE + DAY)
    tick()
    schedule.refresh_from_db()
    assert (schedule.message, Job.objects.count()) == ("", 1)


@pytest.mark.parametrize("error", [StorageFullError(), BackendUnavailableError("It is away.")])
def test_while_the_portal_itself_can_not_submit_the_time_stays_due(make, monkeypatch, error):
    schedule = make()

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("jobs.actions.schedules.run_schedule.check_specs", refuse)
        tick()
    schedule.refresh_from_db()
    assert (schedule.next_at, schedule.message) == (THREE, f"Waits: {error.message}")
    tick()
    schedule.refresh_from_db()
    assert (schedule.message, outcomes(schedule)) == ("", [(THREE, "submitted")])


def test_who_changes_it_between_the_look_and_the_run_wins(make, monkeypatch):
    schedule = make()
    owner = Actor(schedule.owner)

    def change(point: str) -> None:
        if point == "schedule.due":
            change_schedule(
                owner, Schedule.objects.get(), ScheduleContent("run: echo new\n", "0 4 * * *")
            )

    monkeypatch.setattr("jobs.actions.schedules.run_schedule.reach", change)
    assert not run_due(schedule.pk)
    assert not Job.objects.exists()


def test_a_time_that_comes_again_on_a_clock_set_back_is_not_run_again(make):
    schedule = make()
    tick()
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=THREE)
    Schedule.objects.update(next_at=THREE)
    tick()
    assert Job.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.next_at == THREE + DAY


def test_a_schedule_that_never_comes_again_is_never_due_again(make, at):
    schedule = make(cron="0 3 1 7 *")
    Schedule.objects.update(next_at=None)
    tick()
    assert outcomes(schedule) == []


@pytest.mark.feature("P9.2")
@pytest.mark.django_db(transaction=True)
def test_two_who_look_at_once_submit_a_time_once(make):
    schedule = make(overlap="allow", catch_up="all", cron="@hourly", next_at=THREE - 5 * HOUR)
    gate = threading.Barrier(4)

    def look() -> None:
        gate.wait(10)
        try:
            while run_due(schedule.pk):
                pass
        finally:
            connection.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # The second one gave up; the next reader finds what is left.
    tick()
    assert outcomes(schedule) == [(THREE - n * HOUR, "submitted") for n in range(5, -1, -1)]
    assert Job.objects.count() == 6


def test_times_without_a_job_are_forgotten_after_a_month(make, at, project):
    schedule = make()
    for days, job in ((31, None), (31, make_job(project)), (29, None)):
        ScheduleRun.objects.create(
            schedule=schedule,
            slot=THREE - days * DAY + timedelta(seconds=0 if job else 1),
            outcome="submitted" if job else "skipped",
            job=job,
        )
    retention.step()
    assert ScheduleRun.objects.count() == 2
