"""Cancelling a job in each of its statuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job, cancel_together
from jobs.errors import JobAlreadyFinalError, PermissionDeniedError
from jobs.lifecycle import move
from jobs.live.channel import job_topic
from jobs.models import Cluster, Job, JobDependency, JobEvent
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


def test_a_member_may_not_cancel_another_users_job_but_a_maintainer_may(owner):
    project = owner.user.memberships.get().project
    job = job_of(owner)
    with pytest.raises(PermissionDeniedError):
        cancel_job(make_actor(project, Role.MEMBER), job)
    assert cancel_job(make_actor(project, Role.MAINTAINER), job).status == JobStatus.CANCELLED


# Of a row and of an event, what differs between two jobs whatever is done to them.
_OWN = {"id", "_state", "job_id", "at", "created_at", "ended_at", "stopping_at", "parent_id"}


def traces_of(
    actor: Actor, end: Callable[[Sequence[Job]], object], heard: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the rows and notifications that `end` leaves for jobs in every status."""
    states: list[dict[str, Any]] = [
        {"status": status} for status in sorted(ACTIVE_STATUSES - {JobStatus.STOPPING})
    ]
    states += [
        {"held": True, "wait_reason": "HELD", "message": "Held.", "hint": "Release it."},
        {"wait_reason": "CAPACITY", "message": "Waits.", "next_try_at": timezone.now()},
        {"has_claim": True},
        {"parent": job_of(actor, status=JobStatus.RUNNING)},
    ]
    jobs = [job_of(actor, **{"started_at": None, **state}) for state in states]
    for job in jobs:
        child = {"parent_number": job.pk, "status": JobStatus.RUNNING}
        job_of(actor, parent=job, **child)
        needed = {"needs": job, "needs_number": job.pk, "needs_name": job.name}
        JobDependency.objects.create(job=job_of(actor), **needed)
    places = {job.pk: place for place, job in enumerate(jobs)}
    parent = jobs[-1].parent_id
    heard.clear()
    end(jobs)
    rows: list[Any] = []
    for job in Job.objects.filter(pk__in=places).order_by("pk"):
        events = JobEvent.objects.filter(job=job).order_by("pk")
        reported = [{k: v for k, v in vars(each).items() if k not in _OWN} for each in events]
        ends = list(job.dependants.values_list("ended_as", flat=True))
        moments = [job.ended_at is None, job.stopping_at is None]
        columns = {k: v for k, v in vars(job).items() if k not in _OWN | {"next_try_at"}}
        rows.append((columns, reported, ends, moments, job.next_try_at is None))
    names = {job_topic(pk): f"job {place}" for pk, place in places.items()}
    names[job_topic(parent)] = "parent"
    woken = {(name, places.get(row, row)) for kind, name, row in heard if kind == "wake"}
    topics = {names.get(topic, topic) for kind, topic, _ in heard if kind == "publish"}
    return rows, [woken, topics]


def test_jobs_cancelled_together_get_what_each_would_get_alone(
    owner, monkeypatch, django_capture_on_commit_callbacks
):
    heard: list[Any] = []
    wake = "jobs.background.hints.wake"
    monkeypatch.setattr(wake, lambda name, row=None, **_: heard.append(("wake", name, row)))

    def publish(hints: dict[str, Any]) -> None:
        heard.extend(("publish", topic, None) for topic in hints)

    monkeypatch.setattr("jobs.live.channel._publish_all", publish)

    def one_by_one(jobs: Sequence[Job]) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            for job in jobs:
                cancel_job(owner, job)

    def together(jobs: Sequence[Job]) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            cancel_together(owner, [job.pk for job in jobs])

    assert traces_of(owner, together, heard) == traces_of(owner, one_by_one, heard)
