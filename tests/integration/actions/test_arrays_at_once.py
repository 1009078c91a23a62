"""What is done to all jobs of an array, while somebody else changes one of them."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.actions.arrays import cancel_array
from jobs.actions.submit import submit_job
from jobs.lifecycle import move
from jobs.models import Job
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_project
from tests.waiting import eventually, somebody_waits_for_a_lock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.feature("S2.6")]
SPEC = "name: ppo\nrun: 'true'\nresources: {infra: local}\nportal: {array: {seed: [1, 2, 3]}}\n"


def test_cancelling_all_waits_for_a_job_that_starts_and_stops_it(monkeypatch):
    monkeypatch.setattr("jobs.wakeups.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish_all", lambda *args: None)
    project = make_project("rl")
    member = make_actor(project, Role.MEMBER)
    first = submit_job(member, project, SPEC)

    def cancel() -> None:
        cancel_array(member, first.array)
        connection.close()

    canceller = threading.Thread(target=cancel)
    with transaction.atomic():
        move(first, JobStatus.PROVISIONING)
        canceller.start()
        assert eventually(somebody_waits_for_a_lock)
        waiting = Job.objects.filter(status=JobStatus.CANCELLED).count()
    canceller.join(30)
    assert waiting == 2
    assert sorted(Job.objects.values_list("status", flat=True)) == [
        JobStatus.CANCELLED,
        JobStatus.CANCELLED,
        JobStatus.STOPPING,
    ]
