"""A job's priority, changed while it waits."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import hold_job
from jobs.actions.jobs.prioritize import prioritize_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import (
    ConflictError,
    JobAlreadyFinalError,
    NotFoundError,
    PermissionDeniedError,
)
from jobs.models import Job, JobEvent
from jobs.permissions import Actor
from jobs.reconcilers import queue
from jobs.statuses import ACTIVE_STATUSES, FINAL_STATUSES, EventKind, JobStatus, Role
from tests.factories import make_actor, make_job, make_project, make_token
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = pytest.mark.django_db
QUEUED, PROVISIONING = JobStatus.QUEUED, JobStatus.PROVISIONING


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> list[tuple]:
    """Record the hints that are sent; nothing runs in the background."""
    sent: list[tuple] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: sent.append(args))
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return sent


@pytest.fixture
def owner() -> Actor:
    return make_actor(make_project(), Role.MEMBER)


@pytest.fixture
def one_node(settings, tmp_path, monkeypatch) -> None:
    """Set up a fake backend with capacity for one job of one node."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr(FakeBackend, "capacity_nodes", lambda _: 1)
    assert registry.get("fake").capacity_nodes() == 1


def job_of(actor: Actor, **fields) -> Job:
    return make_job(actor.user.memberships.get().project, submitted_by=actor.user, **fields)


def now_of(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def messages(job: Job) -> list[str]:
    events = JobEvent.objects.filter(job=job, kind=EventKind.ACTION).order_by("pk")
    return list(events.values_list("message", flat=True))


@pytest.mark.parametrize(("priority", "started"), [(49, 0), (50, 0), (51, 1)])
def test_who_gets_a_higher_priority_overtakes_and_equals_go_by_age(
    owner, one_node, priority, started
):
    jobs = [job_of(owner), job_of(owner)]
    prioritize_job(owner, jobs[1], priority)
    queue.run_pass()
    statuses = [now_of(job).status for job in jobs]
    assert statuses[started] == PROVISIONING
    assert statuses[1 - started] == QUEUED


def test_a_lower_one_lets_the_younger_pass(owner, one_node):
    jobs = [job_of(owner), job_of(owner)]
    prioritize_job(owner, jobs[0], 10)
    queue.run_pass()
    assert [now_of(job).status for job in jobs] == [QUEUED, PROVISIONING]


def test_a_change_has_the_queue_looked_at_again(owner, no_broker):
    job = job_of(owner)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transaction, "on_commit", lambda call, **_: call())
        prioritize_job(owner, job, 70)
    assert ("queue", None) in no_broker


def test_who_changed_it_from_what_and_from_where_is_written_down_once(owner):
    job = job_of(owner)
    for _ in range(2):
        assert prioritize_job(owner, job, 70).priority == 70
    name = owner.user.get_username()
    assert messages(job) == [f"Priority changed from 50 to 70 by {name}."]
    event = JobEvent.objects.get(job=job, verb="prioritize")
    assert (event.actor, event.source) == (owner.user, "203.0.113.7")


def test_a_held_job_stays_held(owner):
    job = hold_job(owner, job_of(owner))
    prioritize_job(owner, job, 99)
    assert (now_of(job).held, now_of(job).priority) == (True, 99)


def test_a_rerun_begins_with_what_the_specification_says(owner, one_node):
    job = prioritize_job(owner, job_of(owner), 70)
    assert rerun_job(owner, job).priority == 50


@pytest.mark.parametrize("status", sorted(ACTIVE_STATUSES))
def test_a_job_that_has_started_keeps_its_priority_and_its_owner_learns_so(owner, status):
    job = job_of(owner, status=status)
    with pytest.raises(ConflictError, match="has started already"):
        prioritize_job(owner, job, 70)
    assert (now_of(job).priority, messages(job)) == (50, [])


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
def test_so_does_one_that_has_ended(owner, status):
    job = job_of(owner, status=status)
    with pytest.raises(JobAlreadyFinalError):
        prioritize_job(owner, job, 70)
    assert now_of(job).priority == 50


def test_others_jobs_are_for_maintainers_alone(owner):
    job = job_of(owner)
    with pytest.raises(PermissionDeniedError, match="change the priority of others' jobs"):
        prioritize_job(make_actor(job.project, Role.MEMBER), job, 70)
    prioritize_job(make_actor(job.project, Role.MAINTAINER), job, 70)
    assert now_of(job).priority == 70


def test_a_read_only_token_changes_nothing(owner):
    job = job_of(owner)
    token, _ = make_token(owner.user, read_only=True)
    with pytest.raises(PermissionDeniedError, match="may only read"):
        prioritize_job(Actor(owner.user, token), job, 70)


def test_a_job_that_was_deleted_meanwhile_is_not_found(owner):
    job = job_of(owner, status=JobStatus.CANCELLED)
    delete_job(make_actor(job.project, Role.MAINTAINER), now_of(job))
    with pytest.raises(NotFoundError):
        prioritize_job(owner, job, 70)


@pytest.mark.django_db(transaction=True)
def test_a_change_that_waits_for_a_start_to_commit_is_refused(owner):
    job = job_of(owner)
    outcome: list[BaseException | Job] = []

    def change() -> None:
        try:
            outcome.append(prioritize_job(owner, job, 70))
        except ConflictError as error:
            outcome.append(error)
        finally:
            connection.close()

    changer = threading.Thread(target=change)
    with transaction.atomic():
        start_attempt(now_of(job))
        changer.start()
        assert eventually(a_process_waits_for_a_lock)
    changer.join(30)
    assert [type(each) for each in outcome] == [ConflictError]
    assert (now_of(job).status, now_of(job).priority) == (PROVISIONING, 50)
