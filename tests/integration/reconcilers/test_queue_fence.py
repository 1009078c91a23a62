"""Two passes over one queue at once: together they start no more than fits the capacity."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.errors import StaleJobError
from jobs.models import Attempt, Cluster, Job
from jobs.queueing.pass_number import begin_pass, require_newest
from jobs.reconcilers import queue
from jobs.statuses import JobStatus
from tests.factories import make_job
from tests.waiting import a_process_waits_for_a_lock, eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("fake", "no_hints"),
]


@pytest.fixture
def no_hints(monkeypatch) -> None:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


def in_thread(call) -> threading.Thread:
    def run() -> None:
        try:
            call()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def running() -> int:
    return Job.objects.exclude(status=JobStatus.QUEUED).count()


@pytest.mark.feature("P5.1")
def test_a_pass_that_slept_while_another_was_made_starts_nothing(fake, monkeypatch):
    """Pause the first pass after its decision; the second starts another job in that capacity."""
    fake.set_capacity(1)
    make_job()
    decided, goes_on = threading.Event(), threading.Event()
    sleeper: list[int] = []

    def reach(point: str) -> None:
        if point == "plan.decided" and threading.get_ident() in sleeper:
            decided.set()
            assert goes_on.wait(30)

    monkeypatch.setattr(queue, "reach", reach)

    def sleep_in_the_middle() -> None:
        sleeper.append(threading.get_ident())
        queue.run_pass()

    thread = in_thread(sleep_in_the_middle)
    assert decided.wait(30)
    urgent = make_job(priority=90, project=Job.objects.get().project)
    queue.run_pass()
    assert Attempt.objects.get().job == urgent
    goes_on.set()
    thread.join(30)
    assert running() == 1
    assert Cluster.objects.count() == 1


def test_a_new_pass_waits_for_a_start_that_is_under_way_and_counts_it(fake):
    fake.set_capacity(1)
    first, second = make_job(), make_job()
    number = begin_pass()
    with transaction.atomic():
        start_attempt(Job.objects.get(pk=first.pk), planned_by=number)
        thread = in_thread(queue.run_pass)
        assert eventually(a_process_waits_for_a_lock)
    thread.join(30)
    second.refresh_from_db()
    assert second.status == JobStatus.QUEUED
    assert second.message == "Needs 1 node; 0 of 1 are free on fake."


def test_an_older_number_is_refused_and_the_newest_taken():
    older, newest = begin_pass(), begin_pass()
    with transaction.atomic(), pytest.raises(StaleJobError):
        require_newest(older)
    with transaction.atomic():
        require_newest(newest)


def test_passes_in_ten_threads_at_once_never_start_more_than_fits(fake):
    fake.set_capacity(7)
    for size in (1, 2, 3, 1, 2, 3, 1, 2, 3, 1):
        make_job(num_nodes=size)
    for thread in [in_thread(queue.run_pass) for _ in range(10)]:
        thread.join(60)
    queue.run_pass()
    started = Job.objects.exclude(status=JobStatus.QUEUED)
    assert sum(job.num_nodes for job in started) == 7
    assert Attempt.objects.count() == started.count()
