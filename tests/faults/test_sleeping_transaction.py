"""A process that hangs in the middle of a transaction holds its rows, but not for long."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from django.db import DatabaseError, InterfaceError, connection, transaction

from jobs.actions.jobs.cancel import cancel_job
from jobs.models import Job
from jobs.statuses import JobStatus
from monarch_portal.database_settings import connection_options
from tests.factories import make_actor, make_job, make_project


class Sleeper(threading.Thread):
    """A thread that changes a job and hangs before it commits, as a stopped process does."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.asleep, self.woken = threading.Event(), threading.Event()
        self._job = job

    def run(self) -> None:
        with suppress(DatabaseError, InterfaceError), transaction.atomic():
            _be_limited_as_in_service()
            Job.objects.filter(pk=self._job.pk).update(message="about to start")
            self.asleep.set()
            self.woken.wait(60)
        connection.close()


def _be_limited_as_in_service() -> None:
    """Limit this connection as in service; tests' own connections may sleep for longer."""
    name = "idle_in_transaction_session_timeout"
    words = connection_options({})["options"].split()
    (limit,) = (word.partition("=")[2] for word in words if word.startswith(f"{name}="))
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, false)", [name, limit])


@pytest.mark.django_db(transaction=True)
def test_a_job_can_be_cancelled_though_a_process_hangs_in_the_middle_of_changing_it(monkeypatch):
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    project = make_project()
    actor = make_actor(project)
    job = make_job(project, submitted_by=actor.user)
    sleeper = Sleeper(job)
    sleeper.start()
    assert sleeper.asleep.wait(20)
    try:
        cancel_job(actor, job)
    finally:
        sleeper.woken.set()
        sleeper.join(20)
    cancelled = Job.objects.get(pk=job.pk)
    assert (cancelled.status, cancelled.message.startswith("Cancelled")) == (
        JobStatus.CANCELLED,
        True,
    )
