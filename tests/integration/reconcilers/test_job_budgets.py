"""A job's own budget: all its attempts together; reported once, then the job is stopped."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from jobs.backends.fake.backend import FakePlan
from jobs.models import Attempt, Cluster, Job
from jobs.reconcilers import billing, job_budgets, queue, recovering
from jobs.spending import cost_of_job
from jobs.statuses import BUDGET, ClusterStatus, JobStatus, StopReason
from tests.factories import make_attempt, make_job, make_spec
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.6")]
HOUR = timedelta(hours=1)


@pytest.fixture
def run_job(fake, tick, project):
    """Return a function that starts an endless job with that budget, at $6 an hour."""

    def begin(budget: float | None) -> Job:
        fake.set_price("6")
        fake.set_plan(FakePlan())
        portal = {} if budget is None else {"budget_usd": budget}
        job = make_job(project, backend_name="fake", spec=make_spec(portal=portal))
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return begin


@pytest.fixture
def after(time_machine):
    """Return a function that reports a job's state after that time has passed."""

    def look(job: Job, minutes: float, *, with_bill: bool = True) -> str:
        time_machine.move_to(timezone.now() + timedelta(minutes=minutes))
        if with_bill:
            billing.step()
        for job_id in job_budgets.due():
            job_budgets.step(job_id)
        return status_of(job)

    return look


def warnings(job: Job) -> list[str]:
    return list(job.events.filter(verb=BUDGET).values_list("message", flat=True))


def test_a_job_is_warned_once_at_four_fifths_and_stopped_when_it_is_spent(run_job, after, tick):
    job = run_job(3)
    assert after(job, 20) == JobStatus.RUNNING
    assert warnings(job) == []
    assert after(job, 5) == after(job, 1) == JobStatus.RUNNING
    assert warnings(job) == [
        "Has used 83 % of its budget of $3.00; it is stopped when all of it is used."
    ]
    assert after(job, 4) == JobStatus.STOPPING
    assert job.stop_reason == StopReason.BUDGET
    assert job.message.endswith("all of its budget of $3.00.")
    assert "portal.budget_usd" in job.hint
    for _ in range(3):
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.BUDGET
    assert len(warnings(job)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_warn_once_and_stop_once(project, monkeypatch):
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    job = make_job(project, status=JobStatus.RUNNING, spec=make_spec(portal={"budget_usd": 5}))
    Attempt.objects.filter(pk=make_attempt(job).pk).update(usd=Decimal("4.5"))
    at_once(lambda: job_budgets.step(job.pk))
    assert (status_of(job), len(warnings(job))) == (JobStatus.RUNNING, 1)
    Attempt.objects.update(usd=Decimal("5.1"))
    at_once(lambda: job_budgets.step(job.pk))
    assert status_of(job) == JobStatus.STOPPING
    assert job.events.filter(new_status=JobStatus.STOPPING).count() == 1


def at_once(step) -> None:
    """Do it in four threads, each with a connection of its own."""
    start, errors = threading.Barrier(4), []

    def run() -> None:
        try:
            start.wait(10)
            step()
        except Exception as error:  # noqa: BLE001 - reported by the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []


def test_a_job_without_a_budget_is_left_alone(run_job, after):
    assert after(run_job(None), 60 * 24) == JobStatus.RUNNING
    assert job_budgets.due() == []


def test_a_backend_that_sends_no_bill_for_hours_lets_no_job_spend_more(run_job, after):
    job = run_job(3)
    after(job, 1)
    assert after(job, 60, with_bill=False) == JobStatus.STOPPING


def test_all_attempts_of_a_job_count_together(project, after):
    job = make_job(project, status=JobStatus.RUNNING, spec=make_spec(portal={"budget_usd": 5}))
    now = timezone.now()
    for number in (1, 2):
        attempt = make_attempt(job, ended_at=None if number == 2 else now - HOUR)
        Attempt.objects.filter(pk=attempt.pk).update(usd=Decimal("2.5"))
        Cluster.objects.filter(pk=attempt.cluster_id).update(
            usd=Decimal("2.5"), billed_at=now + HOUR, status=ClusterStatus.UP
        )
    assert cost_of_job(job, now) == 5
    assert after(job, 0, with_bill=False) == JobStatus.STOPPING


def test_on_a_shared_cluster_a_job_pays_its_part_of_what_came_since_the_bill(project):
    now = timezone.now()
    first = make_attempt(make_job(project, status=JobStatus.RUNNING))
    second = make_attempt(make_job(project, status=JobStatus.RUNNING), cluster=first.cluster)
    Attempt.objects.update(created_at=now - HOUR)
    Cluster.objects.update(created_at=now - HOUR, billed_at=None, usd_per_hour=Decimal(6))
    for attempt in (first, second):
        assert cost_of_job(attempt.job, now) == 3


def test_a_job_that_waits_to_begin_again_ends_when_nothing_of_its_budget_is_left(project, after):
    job = make_job(
        project,
        status=JobStatus.QUEUED,
        started_at=timezone.now(),
        spec=make_spec(portal={"budget_usd": 1}),
    )
    attempt = make_attempt(job, ended_at=timezone.now())
    Attempt.objects.filter(pk=attempt.pk).update(usd=1)
    assert after(job, 0, with_bill=False) == JobStatus.FAILED
    assert job.stop_reason == StopReason.BUDGET


@pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RECOVERING])
def test_a_job_whose_budget_is_spent_does_not_start_once_more(project, fake, after, tick, status):
    """Cover jobs not checked since, and jobs that were only given machines before."""
    fake.set_capacity(4)
    job = make_job(project, status=status, spec=make_spec(portal={"budget_usd": 1}))
    attempt = make_attempt(job, ended_at=timezone.now())
    Attempt.objects.filter(pk=attempt.pk).update(usd=1)
    Cluster.objects.update(status=ClusterStatus.GONE, gone_at=timezone.now())
    if status == JobStatus.QUEUED:
        queue.run_pass()
    else:
        recovering.step(job.pk)
    assert status_of(job) == status
    assert job.attempts.count() == 1
    after(job, 0, with_bill=False)
    for _ in range(3):
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.BUDGET
