"""A hold against the start of the same job, at the same moment, on the real database."""

from __future__ import annotations

import random
import threading

import pytest
from django.db import connection, transaction

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.errors import ConflictError, StaleJobError
from jobs.models import Attempt, Cluster, Job
from jobs.permissions import Actor
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_job, make_project
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = pytest.mark.django_db(transaction=True)
QUEUED = JobStatus.QUEUED


@pytest.fixture
def owner(monkeypatch) -> Actor:
    """Create a user with a job; no hint is sent to the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return make_actor(make_project(), Role.MEMBER)


def job_of(actor: Actor) -> Job:
    return make_job(actor.user.memberships.get().project, submitted_by=actor.user)


def now_of(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_a_hold_that_waits_for_a_start_to_commit_is_refused(owner):
    """Hold the job while the start is in the middle of its transaction."""
    job = job_of(owner)
    outcome: list[BaseException | Job] = []
    with transaction.atomic():
        start_attempt(now_of(job))
        holder = threading.Thread(target=attempt, args=(lambda: hold_job(owner, job), outcome))
        holder.start()
        assert eventually(a_process_waits_for_a_lock)
    holder.join(30)
    assert [type(each) for each in outcome] == [ConflictError]
    assert (now_of(job).status, now_of(job).held) == (JobStatus.PROVISIONING, False)


def test_a_start_that_waits_for_a_hold_to_commit_makes_nothing(owner):
    job = job_of(owner)
    stale = now_of(job)
    outcome: list[BaseException | Attempt] = []
    with transaction.atomic():
        hold_job(owner, job)
        starter = threading.Thread(target=attempt, args=(lambda: start_attempt(stale), outcome))
        starter.start()
        assert eventually(a_process_waits_for_a_lock)
    starter.join(30)
    assert [type(each) for each in outcome] == [StaleJobError]
    assert (now_of(job).status, now_of(job).held) == (QUEUED, True)
    assert not Attempt.objects.exists() and not Cluster.objects.exists()


def test_of_a_hold_and_a_start_at_once_exactly_one_succeeds_however_they_fall(owner):
    for seed in range(25):
        job = job_of(owner)
        stale, gate = now_of(job), threading.Barrier(2)
        results: dict[str, list] = {"hold": [], "start": []}
        tasks = {
            "hold": lambda job=job: hold_job(owner, job),
            "start": lambda stale=stale: start_attempt(stale),
        }
        order = random.Random(seed).sample(sorted(tasks), 2)
        threads = [
            threading.Thread(target=attempt, args=(tasks[name], results[name], gate))
            for name in order
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        held, started = (type(results[name][0]) for name in ("hold", "start"))
        row = now_of(job)
        if row.held:
            assert (held, started, row.status) == (Job, StaleJobError, QUEUED)
        else:
            assert (held, started) == (ConflictError, Attempt)
            assert row.status == JobStatus.PROVISIONING
        assert row.attempts.count() == (0 if row.held else 1)


def test_a_hold_and_a_release_at_once_end_as_one_after_the_other(owner):
    for _ in range(60):
        job, gate = job_of(owner), threading.Barrier(2)
        hold_job(owner, job)
        results: list[BaseException | Job] = []
        threads = [
            threading.Thread(
                target=attempt,
                args=(lambda act=act, job=job: act(owner, now_of(job)), results, gate),
            )
            for act in (hold_job, release_job)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        # The job has not started, so no error may claim that it has.
        assert [type(each) for each in results] == [Job, Job]


def attempt(call, outcome: list, gate: threading.Barrier | None = None) -> None:
    """Append the result or the exception of `call` to `outcome`; for threads."""
    try:
        if gate is not None:
            gate.wait(10)
        outcome.append(call())
    except (ConflictError, StaleJobError) as error:
        outcome.append(error)
    finally:
        connection.close()
