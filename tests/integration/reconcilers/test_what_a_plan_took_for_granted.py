"""Findings of a plan may be outdated when it is carried out: then nothing unplanned is done."""

from __future__ import annotations

import pytest

from jobs.actions.attempts.preempt import preempt
from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.report_waits import changed_waits, report_waits
from jobs.errors import StaleJobError
from jobs.models import Attempt, Cluster, Job
from jobs.permissions import Actor
from jobs.queueing.pass_number import begin_pass
from jobs.queueing.snapshot import AROUND_RUN_S, load_snapshot
from jobs.reconcilers import queue
from jobs.scheduling.causes import ReportedBlocker
from jobs.scheduling.snapshot import Wait
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.reconcilers.steps import later, push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake")]


@pytest.fixture
def victim(fake, tick, project) -> Job:
    """Start a job that runs."""
    job = make_job(project)
    tick()
    push(fake, job)
    tick()
    return job


@pytest.mark.feature("S2.8")
def test_a_start_onto_a_warm_cluster_that_is_gone_takes_no_other_machines(project):
    job = make_job(project)
    with pytest.raises(StaleJobError):
        start_attempt(job, planned_by=begin_pass(), onto="mp-gone")
    assert not Attempt.objects.exists() and not Cluster.objects.exists()
    assert status_of(job) == JobStatus.QUEUED


@pytest.mark.feature("P5.4")
@pytest.mark.parametrize("leave", [hold_job, cancel_job])
def test_no_job_is_stopped_for_a_job_that_waits_no_more(victim, project, leave):
    other = make_job(project)
    number = begin_pass()
    leave(Actor(other.submitted_by), other)
    with pytest.raises(StaleJobError):
        preempt(other, [victim.pk], planned_by=number)
    assert status_of(victim) == JobStatus.RUNNING


@pytest.mark.feature("P5.4")
def test_a_job_for_which_others_were_stopped_comes_first_until_it_starts(victim, project):
    other = make_job(project)
    preempt(other, [victim.pk], planned_by=begin_pass())
    (queued,) = load_snapshot().queued
    assert (queued.job_id, queued.has_claim) == (other.pk, True)
    start_attempt(Job.objects.get(pk=other.pk))
    Job.objects.filter(pk=other.pk).update(status=JobStatus.QUEUED)
    (queued,) = load_snapshot().queued
    assert not queued.has_claim


@pytest.mark.feature("P5.4")
def test_a_job_comes_first_only_where_a_victim_was_stopped_for_it(victim, project):
    cancel_job(Actor(victim.submitted_by), victim)
    other = make_job(project)
    preempt(other, [victim.pk], planned_by=begin_pass())
    other.refresh_from_db()
    assert not other.has_claim


@pytest.mark.feature("P5.4")
def test_a_job_that_is_held_gives_up_what_others_gave_up_for_it(victim, project):
    other = make_job(project)
    preempt(other, [victim.pk], planned_by=begin_pass())
    actor = Actor(other.submitted_by)
    release_job(actor, hold_job(actor, Job.objects.get(pk=other.pk)))
    other.refresh_from_db()
    assert not other.has_claim


def test_an_older_pass_refuses_no_job(fake, project):
    fake.set_capacity(1)
    job = make_job(project, num_nodes=2)
    plan, begin = queue.plan, begin_pass
    queue_plan = pytest.MonkeyPatch()

    def planned_slowly(snapshot):
        decisions = plan(snapshot)
        begin()
        return decisions

    with queue_plan.context() as patch:
        patch.setattr(queue, "plan", planned_slowly)
        queue.run_pass()
    assert status_of(job) == JobStatus.QUEUED
    queue.run_pass()
    assert status_of(job) == JobStatus.FAILED


@pytest.mark.feature("P5.4")
def test_machines_that_never_return_are_not_counted_on_for_ever(project, time_machine):
    attempt = make_attempt(make_job(project, status=JobStatus.SUCCEEDED))
    Cluster.objects.update(status=ClusterStatus.UP, release_requested_at=attempt.created_at)
    (holder,) = load_snapshot().running
    assert holder.is_leaving and holder.ends_s is not None
    later(time_machine, seconds=AROUND_RUN_S + 60)
    (holder,) = load_snapshot().running
    assert not holder.is_leaving and holder.ends_s is None


@pytest.mark.feature("P5.5")
def test_jobs_in_front_get_exact_reasons_in_each_pool(project, monkeypatch):
    monkeypatch.setattr("jobs.actions.jobs.report_waits.REPORTED_EXACTLY", 1)
    jobs = [make_job(project) for _ in range(4)]
    waits = [
        Wait(job.pk, ReportedBlocker(f"Sentence {number}.")) for number, job in enumerate(jobs)
    ]
    pools = {job.pk: pool for job, pool in zip(jobs, "aabb", strict=True)}
    report_waits(changed_waits(waits, {}, pools))
    said = Job.objects.order_by("pk").values_list("message", flat=True)
    assert list(said) == ["Sentence 0.", "", "Sentence 2.", ""]
