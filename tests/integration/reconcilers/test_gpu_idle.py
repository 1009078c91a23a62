"""A job that leaves its GPUs idle is ended if it opted in; one with unknown GPU use is not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.fake.backend import FakePlan
from jobs.ground import clock
from jobs.models import Attempt, HostMetrics, Job
from jobs.reconcilers import running
from jobs.statuses import JobStatus, StopReason
from tests.factories import make_job, make_spec
from tests.frame_bytes import body
from tests.integration.reconcilers.steps import later, push, status_of
from tests.sample_frames import gpu, sample

pytestmark = pytest.mark.django_db
IDLE = {"minutes": 10, "gpu_below": 5}


@pytest.fixture
def run_job(fake, tick, project):
    """Return a function that starts a job on two nodes that does not end by itself."""

    def begin(**portal) -> Job:
        fake.set_plan(FakePlan())
        spec = make_spec(portal=portal, num_nodes=2)
        job = make_job(project, backend_name="fake", num_nodes=2, spec=spec)
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return begin


def tell(job: Job, *uses: list[float | None] | None) -> None:
    """Send a sample from each rank with the use of its GPUs; None: that rank sends none."""
    attempt = attempt_of(job)
    now = clock.now().timestamp()
    samples = [
        {**sample(0, rank=rank), "t": now, "gpus": [gpu(n, use) for n, use in enumerate(reported)]}
        for rank, reported in enumerate(uses)
        if reported is not None
    ]
    ingest_frames(attempt.pk, attempt_token(job.pk, attempt.number), body(*samples))


def attempt_of(job: Job) -> Attempt:
    return job.attempts.order_by("-number")[0]


def look(job: Job) -> str:
    for row_id in running.due():
        running.step(row_id)
    return status_of(job)


def pass_minutes(time_machine, job: Job, minutes: int, *uses: list[float | None] | None) -> str:
    """Send the same samples from all ranks every half minute, and run the check."""
    for _ in range(2 * minutes):
        later(time_machine, seconds=30)
        tell(job, *uses)
        look(job)
    return status_of(job)


@pytest.mark.feature("P6.2")
def test_a_job_whose_gpus_are_all_idle_for_its_minutes_is_stopped_with_the_figures(
    run_job, time_machine
):
    job = run_job(idle=IDLE)
    tell(job, [0, 4], [0, 3])
    assert pass_minutes(time_machine, job, 9, [0, 4], [0, 3]) == JobStatus.RUNNING
    assert pass_minutes(time_machine, job, 1, [0, 4], [0, 3]) == JobStatus.STOPPING
    assert job.stop_reason == StopReason.IDLE
    assert job.message == "Its 4 GPUs on 2 hosts were used less than 5 % for 10 min."
    assert "raise portal.idle.minutes" in job.hint


@pytest.mark.feature("P6.2")
def test_it_is_cancelled_by_the_policy_once_its_processes_are_gone(
    run_job, time_machine, fake, tick
):
    job = run_job(idle={"minutes": 1, "gpu_below": 5})
    tell(job, [0], [0])
    assert pass_minutes(time_machine, job, 1, [0], [0]) == JobStatus.STOPPING
    tick()
    push(fake, job)
    tick()
    assert status_of(job) == JobStatus.CANCELLED
    assert attempt_of(job).stop_reason == StopReason.IDLE
    assert job.message.startswith("Its 2 GPUs on 2 hosts were used less than 5 % for")


@pytest.mark.parametrize(
    "uses",
    [
        ([0, 5], [0, 0]),
        ([0], [60]),
        ([0], []),
        ([0, None], [0, 0]),
        ([0], None),
    ],
    ids=["one busy GPU", "one busy host", "a host without GPUs", "a silent GPU", "a silent host"],
)
def test_a_job_that_works_or_of_which_it_is_not_known_goes_on(run_job, time_machine, uses):
    job = run_job(idle={"minutes": 1, "gpu_below": 5})
    tell(job, *uses)
    assert pass_minutes(time_machine, job, 5, *uses) == JobStatus.RUNNING


def test_one_moment_of_work_begins_the_minutes_anew(run_job, time_machine):
    job = run_job(idle={"minutes": 3, "gpu_below": 5})
    tell(job, [0], [0])
    pass_minutes(time_machine, job, 2, [0], [0])
    later(time_machine, seconds=30)
    tell(job, [0], [80])
    assert pass_minutes(time_machine, job, 3, [0], [0]) == JobStatus.RUNNING
    assert pass_minutes(time_machine, job, 1, [0], [0]) == JobStatus.STOPPING


def test_work_between_two_samples_of_one_request_counts(run_job, time_machine):
    job = run_job(idle={"minutes": 3, "gpu_below": 5})
    tell(job, [0], [0])
    pass_minutes(time_machine, job, 2, [0], [0])
    later(time_machine, seconds=30)
    attempt, now = attempt_of(job), clock.now().timestamp()
    busy = {**sample(0), "t": now - 10, "gpus": [gpu(0, 70)]}
    idle = {**sample(0), "t": now, "gpus": [gpu(0, 0)]}
    token = attempt_token(job.pk, attempt.number)
    ingest_frames(attempt.pk, token, body(busy, idle))
    row = HostMetrics.objects.get(attempt=attempt, rank=0)
    assert row.gpus_idle_since == row.at


def test_samples_that_stop_coming_end_nothing_however_idle_the_last_ones_were(
    run_job, time_machine
):
    job = run_job(idle={"minutes": 5, "gpu_below": 5})
    tell(job, [0], [0])
    pass_minutes(time_machine, job, 2, [0], [0])
    later(time_machine, minutes=20)
    job.attempts.update(last_seen_at=clock.now())
    assert look(job) == JobStatus.RUNNING
    # Nor do the first ones that come again vouch for the time between.
    assert pass_minutes(time_machine, job, 4, [0], [0]) == JobStatus.RUNNING


def test_what_was_idle_while_the_job_was_set_up_does_not_count(run_job, time_machine):
    job = run_job(idle={"minutes": 2, "gpu_below": 5})
    tell(job, [0], [0])
    Attempt.objects.update(run_started_at=clock.now() + timedelta(minutes=3))
    assert pass_minutes(time_machine, job, 4, [0], [0]) == JobStatus.RUNNING
    assert pass_minutes(time_machine, job, 1, [0], [0]) == JobStatus.STOPPING


def test_a_job_that_does_not_say_so_may_leave_its_gpus_idle(run_job, time_machine):
    job = run_job(reuse=True, idle={"minutes": 1})
    tell(job, [0], [0])
    assert pass_minutes(time_machine, job, 5, [0], [0]) == JobStatus.RUNNING
    assert not HostMetrics.objects.exclude(gpus_idle_since=None).exists()


@pytest.mark.feature("P6.2")
def test_an_administrators_idle_minutes_hold_at_once_and_are_named(run_job, project, time_machine):
    job = run_job(idle={"minutes": 60, "gpu_below": 10})
    tell(job, [9], [9])
    assert pass_minutes(time_machine, job, 3, [9], [9]) == JobStatus.RUNNING
    project.max_idle_minutes = 4
    project.save()
    assert pass_minutes(time_machine, job, 1, [9], [9]) == JobStatus.STOPPING
    assert job.message == (
        "Its 2 GPUs on 2 hosts were used less than 10 % for 4 min. "
        "4 min are the limit of project rl."
    )
