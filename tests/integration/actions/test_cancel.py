"""Cancelling a job in each of its statuses."""

from __future__ import annotations

import pytest

from jobs.actions.cancel import cancel_job
from jobs.errors import JobAlreadyFinalError, PermissionDeniedError
from jobs.lifecycle import move
from jobs.models import Cluster, Job, JobEvent
from jobs.permissions import Actor
from jobs.statuses import ACTIVE_STATUSES, FINAL_STATUSES, EventKind, JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return make_actor(make_project(), Role.MEMBER)


def job_of(actor: Actor, **fields) -> Job:
    project = actor.user.memberships.get().project
    return make_job(project, submitted_by=actor.user, **fields)


def test_a_queued_job_is_cancelled_at_once_and_never_gets_a_cluster(owner):
    job = cancel_job(owner, job_of(owner))
    assert (job.status, job.stop_reason) == (JobStatus.CANCELLED, StopReason.CANCELLED_BY_USER)
    assert job.ended_at is not None
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES - {JobStatus.STOPPING}))
def test_a_job_with_machines_goes_through_stopping(owner, status):
    job = cancel_job(owner, job_of(owner, status=status))
    assert (job.status, job.stop_reason) == (JobStatus.STOPPING, StopReason.CANCELLED_BY_USER)


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
def test_an_ended_job_is_left_as_it_is(owner, status):
    job = job_of(owner, status=status)
    with pytest.raises(JobAlreadyFinalError):
        cancel_job(owner, job)
    job.refresh_from_db()
    assert job.status == status


def test_a_second_cancel_changes_nothing(owner):
    job = cancel_job(owner, job_of(owner, status=JobStatus.RUNNING))
    events = JobEvent.objects.filter(job=job).count()
    assert cancel_job(owner, job).status == JobStatus.STOPPING
    assert JobEvent.objects.filter(job=job).count() == events


def test_a_cancel_that_meets_a_moving_job_starts_over_from_where_it_is_now(owner):
    job = job_of(owner)
    stale = Job.objects.get(pk=job.pk)
    move(job, JobStatus.PROVISIONING)
    assert cancel_job(owner, stale).status == JobStatus.STOPPING


def test_who_cancelled_and_from_where_is_written_down(owner):
    job = cancel_job(owner, job_of(owner))
    event = JobEvent.objects.get(job=job, kind=EventKind.ACTION)
    assert (event.verb, event.actor, event.source) == ("cancel", owner.user, "203.0.113.7")


def test_a_member_may_not_cancel_somebody_elses_job_but_a_maintainer_may(owner):
    project = owner.user.memberships.get().project
    job = job_of(owner)
    with pytest.raises(PermissionDeniedError):
        cancel_job(make_actor(project, Role.MEMBER), job)
    assert cancel_job(make_actor(project, Role.MAINTAINER), job).status == JobStatus.CANCELLED
