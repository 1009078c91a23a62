"""Holding a queued job and releasing it: never started while held, never lost, never twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.report_waits import changed_waits, report_waits
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import submit_job
from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import (
    ConflictError,
    JobAlreadyFinalError,
    PermissionDeniedError,
    StaleJobError,
)
from jobs.lifecycle import move
from jobs.models import Attempt, Cluster, Job, JobEvent
from jobs.permissions import Actor
from jobs.reconcilers import queue
from jobs.scheduling.causes import ReportedBlocker
from jobs.scheduling.snapshot import Wait
from jobs.statuses import ACTIVE_STATUSES, FINAL_STATUSES, EventKind, JobStatus, Role, StopReason
from tests.factories import make_actor, make_attempt, make_job, make_project, make_token

pytestmark = pytest.mark.django_db
QUEUED, HELD = JobStatus.QUEUED, "HELD"


@pytest.fixture
def owner() -> Actor:
    return make_actor(make_project(), Role.MEMBER)


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """Return a fake backend for this test only."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    return backend


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> list[tuple]:
    """Record the hints that are sent; nothing runs in the background."""
    sent: list[tuple] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: sent.append(args))
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return sent


def job_of(actor: Actor, **fields) -> Job:
    return make_job(actor.user.memberships.get().project, submitted_by=actor.user, **fields)


def now_of(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def actions_on(job: Job) -> list[str]:
    events = JobEvent.objects.filter(job=job, kind=EventKind.ACTION).order_by("pk")
    return list(events.values_list("verb", flat=True))


def test_a_held_job_is_not_started_until_it_is_released(owner, fake):
    job = hold_job(owner, job_of(owner))
    queue.run_pass()
    assert (now_of(job).status, now_of(job).wait_reason) == (QUEUED, HELD)
    release_job(owner, job)
    queue.run_pass()
    assert now_of(job).status == JobStatus.PROVISIONING


def test_a_held_job_says_who_holds_it_and_what_to_do(owner):
    job = hold_job(owner, job_of(owner, wait_reason="CAPACITY", message="Needs 4 nodes."))
    assert job.message == f"Held by {owner.user.get_username()}."
    assert "mportal release" in job.hint
    job = release_job(owner, job)
    assert (job.wait_reason, job.message, job.hint) == ("", "", "")


def test_holding_and_releasing_twice_is_as_good_as_once(owner):
    job = job_of(owner)
    for _ in range(2):
        assert hold_job(owner, job).held
    for _ in range(2):
        assert not release_job(owner, job).held
    assert actions_on(job) == ["hold", "release"]


def test_a_hold_by_another_user_does_not_change_the_holder(owner):
    job = hold_job(owner, job_of(owner))
    hold_job(make_actor(job.project, Role.MAINTAINER), job)
    assert now_of(job).message == f"Held by {owner.user.get_username()}."


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES))
def test_a_job_that_has_started_is_not_held_and_its_owner_learns_what_to_do(owner, status):
    job = job_of(owner, status=status)
    with pytest.raises(ConflictError, match="Cancel it instead"):
        hold_job(owner, job)
    assert (now_of(job).held, now_of(job).status) == (False, status)
    assert release_job(owner, job).status == status
    assert actions_on(job) == []


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
@pytest.mark.parametrize("action", [hold_job, release_job])
def test_an_ended_job_is_neither_held_nor_released(owner, status, action):
    job = job_of(owner, status=status)
    with pytest.raises(JobAlreadyFinalError):
        action(owner, job)
    assert now_of(job).status == status


def test_a_released_job_has_kept_its_place_in_the_queue(owner, fake, monkeypatch):
    monkeypatch.setattr(type(fake), "capacity_nodes", lambda _: 1)
    first, second = job_of(owner), job_of(owner)
    hold_job(owner, first)
    release_job(owner, first)
    queue.run_pass()
    assert [now_of(job).status for job in (first, second)] == [JobStatus.PROVISIONING, QUEUED]


def test_a_held_job_holds_back_no_other_job_behind_it(owner, fake, no_broker, monkeypatch):
    monkeypatch.setattr(type(fake), "capacity_nodes", lambda _: 1)
    first, second = job_of(owner), job_of(owner)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transaction, "on_commit", lambda call, **_: call())
        hold_job(owner, first)
    assert ("queue", None) in no_broker
    queue.run_pass()
    assert [now_of(job).status for job in (first, second)] == [QUEUED, JobStatus.PROVISIONING]


def test_a_job_in_its_pause_keeps_the_moment_of_its_next_try(owner, fake):
    soon = timezone.now() + timedelta(minutes=4)
    job = job_of(owner, wait_reason="BACKOFF", message="No room.", next_try_at=soon)
    make_attempt(job, ended_at=timezone.now(), stop_reason="NO_CAPACITY", message="No room.")
    hold_job(owner, job)
    assert now_of(job).next_try_at == soon
    job = release_job(owner, job)
    assert (job.next_try_at, job.wait_reason, job.message) == (soon, "BACKOFF", "No room.")
    queue.run_pass()
    assert now_of(job).status == QUEUED


def test_a_held_job_can_be_cancelled_and_then_deleted(owner):
    job = hold_job(owner, job_of(owner))
    job = cancel_job(owner, job)
    assert (job.status, job.held, job.wait_reason) == (JobStatus.CANCELLED, False, "")
    assert not Cluster.objects.exists()
    delete_job(make_actor(job.project, Role.MAINTAINER), job)
    assert not Job.objects.exists()


def test_a_rerun_of_a_held_job_is_a_job_as_any(owner, fake):
    job = hold_job(owner, job_of(owner))
    again = rerun_job(owner, job)
    queue.run_pass()
    assert (again.held, now_of(job).held) == (False, True)
    assert now_of(again).status != QUEUED or now_of(again).wait_reason != HELD


def test_a_job_can_be_submitted_held(owner, fake):
    project = owner.user.memberships.get().project
    job = submit_job(owner, project, "run: echo\nportal: {hold: true}\n")
    assert (job.held, job.wait_reason) == (True, HELD)
    assert job.message == f"Held by {owner.user.get_username()}."
    queue.run_pass()
    assert now_of(job).status == QUEUED
    assert not rerun_job(owner, job).held


def test_who_held_and_released_and_from_where_is_written_down(owner):
    job = hold_job(owner, job_of(owner))
    release_job(owner, job)
    for verb in ("hold", "release"):
        event = JobEvent.objects.get(job=job, verb=verb)
        assert (event.actor, event.source) == (owner.user, "203.0.113.7")


@pytest.mark.parametrize("action", [hold_job, release_job])
def test_others_jobs_are_held_and_released_by_maintainers_alone(owner, action):
    job = job_of(owner)
    member = make_actor(job.project, Role.MEMBER)
    with pytest.raises(PermissionDeniedError, match="hold and release others' jobs"):
        action(member, job)
    action(make_actor(job.project, Role.MAINTAINER), job)


@pytest.mark.parametrize("action", [hold_job, release_job])
def test_a_read_only_token_holds_and_releases_nothing(owner, action):
    job = job_of(owner)
    token, _ = make_token(owner.user, read_only=True)
    with pytest.raises(PermissionDeniedError, match="may only read"):
        action(Actor(owner.user, token), job)


def test_what_was_decided_before_the_hold_does_not_happen_after_it(owner):
    """Run a pass that read the row before the hold: it neither starts nor refuses the job."""
    job = job_of(owner)
    stale = now_of(job)
    hold_job(owner, job)
    with pytest.raises(StaleJobError):
        start_attempt(stale)
    with pytest.raises(StaleJobError):
        move(stale, JobStatus.FAILED, reason=StopReason.NO_CAPACITY)
    report_waits(changed_waits([Wait(stale.pk, ReportedBlocker("Needs 9 nodes."))], {}, {}))
    assert (now_of(job).status, now_of(job).wait_reason) == (QUEUED, HELD)
    assert not Attempt.objects.exists()


def test_a_held_job_is_not_started_even_by_who_knows_that_it_is_held(owner):
    job = hold_job(owner, job_of(owner))
    with pytest.raises(StaleJobError):
        start_attempt(job)
    assert now_of(job).status == QUEUED
