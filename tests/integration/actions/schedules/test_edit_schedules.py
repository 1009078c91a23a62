"""Actions on schedules, and the owners that may take them."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from jobs.actions.schedules import edit_schedules as module
from jobs.actions.schedules.edit_schedules import (
    ScheduleContent,
    change_schedule,
    create_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from jobs.actions.schedules.run_schedule import run_now
from jobs.errors import ConflictError, InvalidSpecError, NotFoundError, PermissionDeniedError
from jobs.models import Job, Membership, Schedule
from jobs.permissions import Actor
from jobs.statuses import OverlapPolicy, Role
from tests.factories import make_actor, make_job, make_project, make_schedule

pytestmark = pytest.mark.django_db
SPEC = "name: train\nrun: echo hello\n"
NIGHTLY = ScheduleContent(SPEC, "0 3 * * *", "Europe/Berlin")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Send no hint to the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def project(db):
    return make_project("rl")


@pytest.fixture
def member(project) -> Actor:
    return make_actor(project, Role.MEMBER)


@pytest.fixture
def maintainer(project) -> Actor:
    return make_actor(project, Role.MAINTAINER)


def test_a_schedule_begins_with_the_first_time_that_is_still_to_come(project, member, time_machine):
    time_machine.move_to("2026-07-01T00:30:00Z", tick=False)
    schedule = create_schedule(member, project, "nightly", NIGHTLY)
    assert schedule.next_at.isoformat() == "2026-07-01T01:00:00+00:00"
    assert (schedule.owner, schedule.overlap) == (member.user, OverlapPolicy.SKIP)


@pytest.mark.feature("P9.2")
def test_all_that_is_wrong_with_it_is_reported_at_once_as_submit_reports_it(project, member):
    content = ScheduleContent("nam: x\nnum_nodes: 0\n", "61 * * * *", "Berlin")
    with pytest.raises(InvalidSpecError) as refused:
        create_schedule(member, project, "Not a name", content)
    paths = [row["path"] for row in refused.value.data["errors"]]
    assert {"schedule.name", "schedule.cron", "schedule.zone", "nam", "num_nodes"} <= set(paths)
    assert not Schedule.objects.exists()


def test_a_name_is_taken_once_in_a_project(project, member):
    create_schedule(member, project, "nightly", NIGHTLY)
    with pytest.raises(ConflictError, match="nightly already"):
        create_schedule(member, project, "nightly", NIGHTLY)
    other = make_project()
    create_schedule(make_actor(other), other, "nightly", NIGHTLY)


def test_a_project_has_so_many_and_no_more(project, member, monkeypatch):
    monkeypatch.setattr(module, "MOST_SCHEDULES", 1)
    create_schedule(member, project, "one", NIGHTLY)
    with pytest.raises(ConflictError, match="at most 1"):
        create_schedule(member, project, "two", NIGHTLY)


@pytest.mark.parametrize(
    "do",
    [
        pause_schedule,
        resume_schedule,
        run_now,
        delete_schedule,
        lambda actor, schedule: change_schedule(actor, schedule, NIGHTLY),
    ],
)
def test_ones_own_is_ones_own_matter_and_anothers_the_maintainers(project, member, maintainer, do):
    schedule = make_schedule(project)
    with pytest.raises(PermissionDeniedError):
        do(member, schedule)
    do(maintainer, schedule)
    do(member, make_schedule(project, "own", owner=member.user))


def test_a_viewer_makes_none(project):
    with pytest.raises(PermissionDeniedError):
        create_schedule(make_actor(project, Role.VIEWER), project, "nightly", NIGHTLY)


def test_a_pause_takes_its_times_away_and_a_resume_goes_on_from_now(project, member):
    schedule = create_schedule(member, project, "nightly", NIGHTLY)
    first = schedule.next_at
    pause_schedule(member, schedule)
    assert (schedule.next_at, schedule.message) == (None, f"Paused by {member.user}.")
    revision = schedule.revision
    pause_schedule(member, schedule)
    assert schedule.revision == revision
    resume_schedule(member, schedule)
    assert (schedule.next_at, schedule.message, schedule.paused) == (first, "", False)


def test_a_change_of_its_times_begins_anew_and_one_of_anything_else_does_not(project, member):
    due = timezone.now() - timedelta(minutes=1)
    schedule = make_schedule(project, owner=member.user, next_at=due)
    change_schedule(
        member, schedule, ScheduleContent(None, "0 3 * * *", overlap=OverlapPolicy.ALLOW)
    )
    assert (schedule.next_at, schedule.overlap) == (due, "allow")
    change_schedule(member, schedule, ScheduleContent(None, "0 4 * * *"))
    assert schedule.next_at > timezone.now()


@pytest.mark.feature("P9.2")
def test_the_user_who_changes_what_it_runs_becomes_its_owner_and_no_other_does(
    project, member, maintainer
):
    schedule = make_schedule(project, owner=member.user)
    change_schedule(maintainer, schedule, ScheduleContent(None, "0 4 * * *"))
    assert schedule.owner == member.user
    change_schedule(maintainer, schedule, ScheduleContent("run: echo other\n", "0 4 * * *"))
    assert schedule.owner == maintainer.user
    assert schedule.spec["run"] == "echo other"


def test_who_resumes_one_whose_owner_has_left_becomes_its_owner(project, member, maintainer):
    schedule = make_schedule(project, owner=member.user, paused=True)
    Membership.objects.filter(user=member.user).delete()
    resume_schedule(maintainer, schedule)
    assert (schedule.owner, schedule.paused) == (maintainer.user, False)
    again = make_schedule(project, "again", owner=maintainer.user, paused=True)
    resume_schedule(make_actor(project, Role.ADMIN), again)
    assert again.owner == maintainer.user


@pytest.mark.feature("P9.2")
def test_run_now_submits_in_the_owners_name_and_keeps_its_times(project, member, maintainer):
    schedule = make_schedule(project, owner=member.user)
    before = schedule.next_at
    job = run_now(maintainer, schedule)
    assert (job.submitted_by, job.schedule_run.schedule) == (member.user, schedule)
    assert job.events.get().message == f"Submitted by schedule nightly, run by {maintainer.user}"
    assert job.schedule_run.is_manual
    schedule.refresh_from_db()
    assert schedule.next_at == before
    assert run_now(member, schedule) != job


def test_run_now_of_one_whose_owner_has_left_is_refused(project, member, maintainer):
    schedule = make_schedule(project, owner=member.user)
    Membership.objects.filter(user=member.user).delete()
    with pytest.raises(ConflictError, match=f"Its owner {member.user} may not submit"):
        run_now(maintainer, schedule)
    assert not Job.objects.exists()


def test_a_deleted_schedule_leaves_its_jobs(project, member):
    schedule = make_schedule(project, owner=member.user)
    job = run_now(member, schedule)
    delete_schedule(member, schedule)
    assert Job.objects.get() == job
    for do in (pause_schedule, resume_schedule, delete_schedule, run_now):
        with pytest.raises(NotFoundError):
            do(member, Schedule(pk=10**6, project=project, name="x", owner=member.user,
                                spec=schedule.spec))  # fmt: skip


def test_a_job_of_a_schedule_can_be_deleted_and_its_time_stays(project):
    schedule = make_schedule(project)
    run = schedule.runs.create(slot=timezone.now(), outcome="submitted", job=make_job(project))
    Job.objects.all().delete()
    run.refresh_from_db()
    assert run.job is None


@pytest.mark.django_db(transaction=True)
def test_of_several_who_make_one_of_a_name_at_once_one_makes_it(project, member):
    results: list[object] = []

    def make() -> None:
        try:
            results.append(create_schedule(member, project, "nightly", NIGHTLY))
        except ConflictError as error:
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(type(each).__name__ for each in results) == [*["ConflictError"] * 3, "Schedule"]
