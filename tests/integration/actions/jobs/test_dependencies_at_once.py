"""The end of a job against the submit of one that needs it, on the real database."""

from __future__ import annotations

import random
import threading

import pytest
from django.db import connection, transaction

from jobs.actions.jobs.submit import submit_job
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.models import Job
from jobs.models.startable_jobs import startable_jobs
from jobs.permissions import Actor
from jobs.reconcilers import dependencies
from jobs.statuses import JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_project
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.feature("S2.6")]
SPEC = "name: last\nrun: 'true'\nresources: {infra: local}\nportal: {depends_on: [%s]}\n"


@pytest.fixture
def owner(monkeypatch) -> Actor:
    """Create a user with a project; no hint is sent to the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return make_actor(make_project("rl"), Role.MEMBER)


def running(owner: Actor, name: str = "first") -> Job:
    project = owner.user.memberships.get().project
    return make_job(project, submitted_by=owner.user, name=name, status=JobStatus.RUNNING)


def submit(owner: Actor, *needs: Job) -> Job:
    numbers = ", ".join(str(job.pk) for job in needs)
    return submit_job(owner, owner.user.memberships.get().project, SPEC % numbers)


def succeed(job: Job) -> None:
    move(Job.objects.get(pk=job.pk), JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)


def in_thread(*calls) -> list[threading.Thread]:
    """Start each in a thread of its own; they begin together."""
    gate = threading.Barrier(len(calls))

    def run(call) -> None:
        try:
            gate.wait(10)
            call()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def is_startable(job: Job) -> bool:
    return startable_jobs(clock.now()).filter(pk=job.pk).exists()


def test_an_end_that_waits_for_a_submit_to_commit_reaches_the_new_job(owner):
    first = running(owner)
    with transaction.atomic():
        last = submit(owner, first)
        [ender] = in_thread(lambda: succeed(first))
        assert eventually(a_process_waits_for_a_lock)
    ender.join(30)
    assert is_startable(last)


def test_a_submit_that_waits_for_an_end_to_commit_finds_it(owner):
    first, made = running(owner), []
    with transaction.atomic():
        succeed(first)
        [submitter] = in_thread(lambda: made.append(submit(owner, first)))
        assert eventually(a_process_waits_for_a_lock)
    submitter.join(30)
    assert is_startable(made[0])


def test_however_ends_submits_and_looks_fall_nothing_is_forgotten(owner):
    for seed in range(15):
        needs, made = [running(owner, f"first-{seed}-{i}") for i in range(3)], []
        calls = [lambda job=job: succeed(job) for job in needs]
        calls.append(lambda needs=needs, made=made: made.append(submit(owner, *needs)))
        calls.append(lambda: [dependencies.step(pk) for pk in dependencies.due()])
        random.Random(seed).shuffle(calls)
        for thread in in_thread(*calls):
            thread.join(30)
        for job_id in dependencies.due():
            dependencies.step(job_id)
        [last] = made
        assert is_startable(last)
        last.refresh_from_db()
        assert (last.wait_reason, last.message) == ("", "")
        assert dependencies.due() == []
