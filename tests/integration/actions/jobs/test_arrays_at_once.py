"""Actions on all jobs of an array while another user changes one of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.actions.jobs.arrays import cancel_array, rerun_failed
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import submit_job
from jobs.errors import ConflictError
from jobs.lifecycle import move
from jobs.models import Job
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_project
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.feature("S2.6")]
SPEC = "name: ppo\nrun: 'true'\nresources: {infra: local}\nportal: {array: {seed: [1, 2, 3]}}\n"
AFTER = "name: after\nrun: 'true'\nportal: {depends_on: [{job: ppo, after: end}]}\n"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish_all", lambda *args: None)


def alone(action: Callable[..., Any], *arguments: Any) -> Any:
    """Do it over a connection of this thread's, and close that."""
    try:
        return action(*arguments)
    finally:
        connection.close()


def test_cancelling_all_waits_for_a_job_that_starts_and_stops_it():
    project = make_project("rl")
    member = make_actor(project, Role.MEMBER)
    first = submit_job(member, project, SPEC)
    canceller = ThreadPoolExecutor(1)
    with transaction.atomic():
        move(first, JobStatus.PROVISIONING)
        cancelled = canceller.submit(alone, cancel_array, member, first.array)
        assert eventually(a_process_waits_for_a_lock)
        waiting = Job.objects.filter(status=JobStatus.CANCELLED).count()
    assert cancelled.result(timeout=30) == 3
    assert waiting == 2
    assert sorted(Job.objects.values_list("status", flat=True)) == [
        JobStatus.CANCELLED,
        JobStatus.CANCELLED,
        JobStatus.STOPPING,
    ]


def test_of_two_who_rerun_what_failed_at_once_one_finds_nothing_left():
    project = make_project("rl")
    member = make_actor(project, Role.MEMBER)
    array = submit_job(member, project, SPEC).array
    cancel_array(member, array)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(alone, rerun_failed, member, array) for _ in range(2)]
        errors = [each.exception() for each in both]
    assert sorted(map(type, errors), key=str) == [type(None), ConflictError]
    assert array.jobs.count() == 6


def test_who_reruns_what_failed_and_who_submits_what_needs_it_never_wait_in_a_circle():
    project = make_project("rl")
    member = make_actor(project, Role.MEMBER)
    first = submit_job(member, project, SPEC)
    array = first.array
    cancel_array(member, array)
    # The order of the array's positions is no longer that of the jobs' numbers.
    cancel_job(member, rerun_job(member, first))
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            Job.objects.select_for_update(no_key=True).get(pk=first.pk + 1)
            submitted = pool.submit(alone, submit_job, member, project, AFTER)
            assert eventually(a_process_waits_for_a_lock)
            again = pool.submit(alone, rerun_failed, member, array)
            assert eventually(lambda: a_process_waits_for_a_lock(2))
        assert len(again.result()) == 3
        assert submitted.result().dependencies.count() == 3
