"""Time limits of jobs: what they requested, what was added, and what an administrator allows."""

from __future__ import annotations

import pytest

from jobs.actions.jobs.extend import extend_job
from jobs.backends.fake.backend import FakePlan
from jobs.ground import clock
from jobs.models import Job
from jobs.reconcilers import running
from jobs.statuses import JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_spec
from tests.integration.reconcilers.steps import later, push, status_of

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def run_job(fake, tick, project):
    """Return a function that starts a job that does not end by itself."""

    def begin(**portal) -> Job:
        fake.set_plan(FakePlan())
        job = make_job(project, backend_name="fake", spec=make_spec(portal=portal))
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return begin


def look(job: Job) -> str:
    for row_id in running.due():
        running.step(row_id)
    return status_of(job)


def warnings(job: Job) -> list[str]:
    return list(job.events.filter(verb="walltime").order_by("pk").values_list("message", flat=True))


@pytest.mark.feature("P6.1")
def test_a_job_that_asks_for_nothing_is_stopped_at_the_limit_of_its_project(
    run_job, project, time_machine
):
    project.max_duration_s = HOUR
    project.save()
    job = run_job()
    later(time_machine, minutes=59)
    assert look(job) == JobStatus.RUNNING
    later(time_machine, minutes=2)
    assert look(job) == JobStatus.STOPPING
    assert job.stop_reason == StopReason.TIMEOUT
    assert job.message == "Ran longer than 1 h, the limit of project rl."


@pytest.mark.feature("P6.1")
def test_a_limit_of_the_installation_holds_for_every_job_also_for_one_that_runs_already(
    run_job, time_machine, settings
):
    job = run_job(max_duration="12h")
    later(time_machine, hours=3)
    assert look(job) == JobStatus.RUNNING
    settings.MPORTAL_MAX_DURATION_S = 2 * HOUR
    assert look(job) == JobStatus.STOPPING
    assert job.message == "Ran longer than 2 h, the limit of this installation."


@pytest.mark.feature("P6.1")
def test_a_limit_of_the_installation_holds_for_a_job_that_asks_for_nothing_and_is_not_silent(
    run_job, time_machine, settings
):
    job = run_job()
    later(time_machine, hours=3)
    job.attempts.update(last_seen_at=clock.now())
    settings.MPORTAL_MAX_DURATION_S = 2 * HOUR
    assert look(job) == JobStatus.STOPPING


def test_a_job_is_looked_at_for_its_time_only_when_something_of_it_is_due(run_job, time_machine):
    job = run_job(max_duration="2h")

    def is_due(**passed: float) -> bool:
        later(time_machine, **passed)
        job.attempts.update(last_seen_at=clock.now())
        return job.pk in running.due()

    assert not is_due(minutes=100)
    assert is_due(minutes=11), "to be warned that it will be stopped"
    look(job)
    assert len(warnings(job)) == 1
    assert not is_due(minutes=5), "it was warned"
    assert is_due(minutes=6), "over"


def test_what_comes_before_run_does_not_count(fake, tick, project, time_machine):
    fake.set_plan(FakePlan(start_s=2 * HOUR))
    job = make_job(project, backend_name="fake", spec=make_spec(portal={"max_duration": "1h"}))
    tick()
    later(time_machine, hours=1, minutes=59)
    tick()
    assert status_of(job) == JobStatus.PROVISIONING


@pytest.mark.feature("P6.1")
def test_a_job_is_warned_once_before_its_end_and_again_after_it_was_extended(run_job, time_machine):
    job = run_job(max_duration="2h")
    later(time_machine, hours=1, minutes=49)
    look(job)
    assert warnings(job) == []
    later(time_machine, minutes=1, seconds=1)
    for _ in range(2):
        look(job)
    assert len(warnings(job)) == 1
    assert warnings(job)[0].endswith("it may run for 2 h. It can be extended.")
    extend_job(make_actor(job.project, Role.ADMIN), job, HOUR)
    later(time_machine, minutes=30)
    assert look(job) == JobStatus.RUNNING
    later(time_machine, minutes=30)
    look(job)
    assert len(warnings(job)) == 2
    later(time_machine, minutes=10)
    assert look(job) == JobStatus.STOPPING
    assert job.message == "Ran longer than its max_duration of 3 h."
