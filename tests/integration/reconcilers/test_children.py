"""Child jobs when their parent ends, or only begins again."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.submit import submit_job
from jobs.lifecycle import move
from jobs.models import Cluster, Job, JobEvent
from jobs.permissions import Actor
from jobs.reconcilers import children
from jobs.statuses import (
    ACTIVE_STATUSES,
    FINAL_STATUSES,
    ClusterStatus,
    JobStatus,
    Role,
    StopReason,
)
from tests.factories import make_actor, make_attempt, make_job
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.6"), pytest.mark.usefixtures("fake")]
SPEC = {"name": "eval", "run": "true"}


def end(job: Job, status: JobStatus = JobStatus.SUCCEEDED) -> None:
    Job.objects.filter(pk=job.pk).update(status=status, ended_at=timezone.now())


def child_of(parent: Job, *, detached: bool = False, **fields: object) -> Job:
    attempt = parent.attempts.last() or make_attempt(parent)
    actor = Actor(parent.submitted_by, driver=attempt)
    spec = {**SPEC, "portal": {"detached": True}} if detached else SPEC
    job = submit_job(actor, parent.project, spec)
    Job.objects.filter(pk=job.pk).update(**fields)
    return Job.objects.get(pk=job.pk)


def sweep() -> None:
    """Run one tick."""
    for job_id in children.due():
        children.step(job_id)


@pytest.fixture
def parent(project) -> Job:
    return make_job(project, status=JobStatus.RUNNING)


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
def test_a_child_that_waits_is_cancelled_when_its_parent_has_ended(parent, status):
    child = child_of(parent)
    end(parent, status)
    sweep()
    child.refresh_from_db()
    assert (child.status, child.stop_reason) == (JobStatus.CANCELLED, StopReason.PARENT)
    reported = f"Job {parent.pk}, which submitted it, has ended ({status.label.lower()})."
    assert child.message == reported
    event = JobEvent.objects.filter(job=child).latest("pk")
    assert (event.reason, event.message) == (StopReason.PARENT, reported)


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES - {JobStatus.STOPPING}))
def test_a_child_with_machines_goes_through_stopping(parent, status):
    child = child_of(parent, status=status)
    end(parent)
    sweep()
    child.refresh_from_db()
    assert (child.status, child.stop_reason) == (JobStatus.STOPPING, StopReason.PARENT)
    assert StopReason.PARENT.final_status == JobStatus.CANCELLED
    sweep()
    assert JobEvent.objects.filter(job=child, new_status=JobStatus.STOPPING).count() == 1


@pytest.mark.parametrize("status", sorted(set(JobStatus) - FINAL_STATUSES))
def test_a_parent_that_has_not_ended_for_good_keeps_its_children(parent, status):
    child = child_of(parent)
    parent.attempts.update(ended_at=timezone.now())
    Job.objects.filter(pk=parent.pk).update(status=status)
    sweep()
    assert status_of(child) == JobStatus.QUEUED


def test_a_detached_child_goes_on(parent):
    child = child_of(parent, detached=True)
    end(parent)
    sweep()
    assert status_of(child) == JobStatus.QUEUED


def test_a_child_that_has_ended_is_left_as_it_is(parent):
    child = child_of(parent)
    end(child)
    end(parent)
    sweep()
    assert status_of(child) == JobStatus.SUCCEEDED


def test_children_of_children_end_in_their_turn_but_not_below_a_detached_one(parent):
    child, free = child_of(parent), child_of(parent, detached=True)
    for each in (child, free):
        Job.objects.filter(pk=each.pk).update(status=JobStatus.RUNNING)
        each.refresh_from_db()
    below, kept = child_of(child), child_of(free)
    end(parent)
    sweep()
    assert status_of(below) == JobStatus.QUEUED  # its own parent is still stopping
    end(child, JobStatus.CANCELLED)
    sweep()
    assert (status_of(below), status_of(kept)) == (JobStatus.CANCELLED, JobStatus.QUEUED)


def test_a_preempted_child_is_not_queued_again(parent):
    child = child_of(parent, status=JobStatus.STOPPING, stop_reason=StopReason.PREEMPTED)
    end(parent)
    sweep()
    child.refresh_from_db()
    assert (child.status, child.stop_reason) == (JobStatus.STOPPING, StopReason.PARENT)
    assert children.due() == []


def test_a_parent_that_is_deleted_takes_its_children_along(parent):
    child = child_of(parent)
    end(parent)
    Cluster.objects.update(status=ClusterStatus.GONE)
    delete_job(make_actor(parent.project, Role.ADMIN), Job.objects.get(pk=parent.pk))
    sweep()
    child.refresh_from_db()
    assert (child.status, child.parent_number) == (JobStatus.CANCELLED, parent.pk)
    assert child.message == f"Job {parent.pk}, which submitted it, has ended (deleted)."


def test_a_killed_process_leaves_no_child_behind(parent, monkeypatch):
    child = child_of(parent)
    # The hint is lost with its sender: the next tick finds the child nevertheless.
    monkeypatch.setattr("jobs.background.hints.wake", lambda *_, **__: None)
    move(parent, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
    assert children.due() == [child.pk]


def test_the_end_of_a_parent_wakes_the_reconciler(
    parent, monkeypatch, django_capture_on_commit_callbacks
):
    woken: list[str] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda name, *_, **__: woken.append(name))
    child_of(parent)
    with django_capture_on_commit_callbacks(execute=True):
        move(parent, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
    assert "children" in woken


def test_a_child_counts_as_its_submitters_own_and_ends_when_the_parent_is_cancelled(
    fake, tick, project
):
    fake.set_capacity(8)
    parent = make_job(project)
    tick()
    push(fake, parent)
    tick()
    parent.refresh_from_db()
    child = child_of(parent)
    tick()
    push(fake, child)
    tick()
    assert status_of(child) == JobStatus.RUNNING
    assert child.submitted_by == parent.submitted_by
    cancel_job(Actor(parent.submitted_by), parent)
    for _ in range(4):
        tick()
        sweep()
    child.refresh_from_db()
    assert (status_of(parent), child.status) == (JobStatus.CANCELLED, JobStatus.CANCELLED)
    assert child.attempts.get().stop_reason == StopReason.PARENT
