"""A job without a driver ends once no program has been attached for its idle minutes."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.backends.fake.backend import FakePlan
from jobs.ground import clock
from jobs.models import GatewaySession, Job
from jobs.reconcilers import running
from jobs.statuses import GatewayState, JobKind, JobStatus, StopReason
from tests.factories import make_job, make_spec
from tests.integration.reconcilers.steps import later, push, status_of

pytestmark = pytest.mark.django_db
WAITING: dict[str, Any] = {"meshes": {"trainers": 1}, "gateway": True}


@pytest.fixture
def run_job(fake, tick, project):
    """Return a function that starts a job whose `portal` has these further keys."""

    def begin(run: str = "", **portal: Any) -> Job:
        fake.set_plan(FakePlan())
        spec = make_spec(run=run, portal={**WAITING, **portal})
        job = make_job(project, backend_name="fake", kind=JobKind.MONARCH, spec=spec)
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return begin


def attach(job: Job, state: GatewayState = GatewayState.OPEN) -> GatewaySession:
    return GatewaySession.objects.create(
        attempt=job.attempts.get(), user=job.submitted_by, state=state, secret_digest="digest"
    )


def look(job: Job) -> str:
    for row_id in running.due():
        running.step(row_id)
    return status_of(job)


def test_it_is_stopped_after_its_idle_minutes_and_says_why(run_job, time_machine):
    job = run_job(idle={"minutes": 5})
    later(time_machine, seconds=290)
    assert look(job) == JobStatus.RUNNING
    later(time_machine, seconds=10)
    assert look(job) == JobStatus.STOPPING
    assert job.stop_reason == StopReason.IDLE
    assert job.message == "No program was attached for 5 min."
    assert "mportal dev" in job.hint


def test_without_idle_it_waits_for_ten_minutes_or_an_administrators_limit(
    run_job, time_machine, project
):
    job = run_job()
    later(time_machine, seconds=590)
    assert look(job) == JobStatus.RUNNING
    project.max_idle_minutes = 9
    project.save()
    assert look(job) == JobStatus.STOPPING
    assert job.message == ("No program was attached for 10 min. 9 min are the limit of project rl.")


@pytest.mark.parametrize("state", [GatewayState.OPENING, GatewayState.OPEN, GatewayState.AWAY])
def test_an_attached_program_keeps_it_and_the_minutes_count_from_its_end(
    run_job, time_machine, state
):
    job = run_job(idle={"minutes": 1})
    session = attach(job, state)
    later(time_machine, seconds=3600)
    assert look(job) == JobStatus.RUNNING
    session.state, session.ended_at = GatewayState.CLOSED, clock.now()
    session.save()
    later(time_machine, seconds=50)
    assert look(job) == JobStatus.RUNNING
    later(time_machine, seconds=10)
    assert look(job) == JobStatus.STOPPING


def test_a_child_job_that_has_not_ended_keeps_it(run_job, time_machine, project):
    job = run_job(idle={"minutes": 1})
    child = make_job(project, parent=job, status=JobStatus.QUEUED)
    later(time_machine, seconds=3600)
    assert look(job) == JobStatus.RUNNING
    Job.objects.filter(pk=child.pk).update(status=JobStatus.CANCELLED, ended_at=clock.now())
    assert look(job) == JobStatus.STOPPING


def test_a_job_with_a_driver_goes_on_without_laptops(run_job, time_machine):
    job = run_job(run="python train.py")
    later(time_machine, seconds=86_000)
    assert look(job) == JobStatus.RUNNING
