"""Jobs that one pass starts, together where nothing speaks against it, and otherwise one by one."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.attempts import start_attempt
from jobs.actions.attempts.start_attempt import start_attempts
from jobs.errors import StaleJobError
from jobs.lifecycle import move
from jobs.models import Attempt, AttemptStage, Cluster, Job, JobEvent, LogHead
from jobs.queueing.pass_number import begin_pass
from jobs.reconcilers import queue
from jobs.statuses import JobStatus
from tests.factories import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake", "redis_client")]


@pytest.fixture
def jobs(fake) -> list[Job]:
    """Create more jobs than one transaction takes."""
    fake.set_capacity(1000)
    return [make_job() for _ in range(queue.TOGETHER + 3)]


def started() -> set[int]:
    rows = Job.objects.filter(status=JobStatus.PROVISIONING)
    return set(rows.values_list("pk", flat=True))


def test_all_that_a_pass_starts_have_what_one_that_starts_alone_has(jobs):
    queue.run_pass()
    assert started() == {job.pk for job in jobs}
    for job in Job.objects.all():
        attempt = job.attempts.get()
        assert (attempt.number, attempt.cluster.num_nodes) == (1, job.num_nodes)
        assert str(job.pk) in attempt.cluster.name
        assert job.started_at is not None
        event = JobEvent.objects.get(job=job, new_status=JobStatus.PROVISIONING)
        assert (event.attempt_id, event.old_status) == (attempt.pk, JobStatus.QUEUED)
    for each in (LogHead, AttemptStage, Cluster):
        assert each.objects.count() == len(jobs)


def test_starting_more_jobs_together_takes_no_more_statements(jobs):
    first, few, many = jobs[:2], jobs[2:4], jobs[4:44]
    # The first one may make the row of the installation.
    start_attempts([job.pk for job in first], planned_by=begin_pass())
    counts = []
    for some in (few, many):
        with CaptureQueriesContext(connection) as statements:
            start_attempts([job.pk for job in some], planned_by=begin_pass())
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_a_further_attempt_is_numbered_on_and_keeps_the_first_start(jobs):
    queue.run_pass()
    before = dict(Job.objects.values_list("pk", "started_at"))
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    Job.objects.update(status=JobStatus.QUEUED)
    queue.run_pass()
    assert set(Attempt.objects.values_list("number", flat=True)) == {1, 2}
    assert dict(Job.objects.values_list("pk", "started_at")) == before


def test_who_was_held_or_cancelled_meanwhile_is_left_out_and_the_others_start(jobs):
    number = begin_pass()
    Job.objects.filter(pk=jobs[0].pk).update(held=True)
    move(jobs[1], JobStatus.CANCELLED)
    rest = [job.pk for job in jobs[2:]]
    assert sorted(start_attempts([job.pk for job in jobs], planned_by=number)) == rest
    assert started() == set(rest)


def test_no_job_starts_by_a_pass_that_is_not_the_newest(jobs):
    number = begin_pass()
    begin_pass()
    with pytest.raises(StaleJobError):
        start_attempts([job.pk for job in jobs], planned_by=number)
    assert not Attempt.objects.exists()


def test_what_cannot_start_together_starts_one_by_one(jobs, monkeypatch):
    monkeypatch.setattr(start_attempt, "start_together", Mock(side_effect=ZeroDivisionError))
    queue.run_pass()
    assert started() == {job.pk for job in jobs}
    assert Attempt.objects.count() == Cluster.objects.count() == len(jobs)


def test_a_job_with_a_budget_starts_alone_and_one_that_keeps_its_cluster_with_the_others(jobs):
    with_budget, keeping, *rest = jobs
    with_budget.request_options["budget_usd"] = 5
    with_budget.save()
    Job.objects.filter(pk=keeping.pk).update(fingerprint="alike")
    together = start_attempts([job.pk for job in jobs], planned_by=begin_pass())
    assert sorted(together) == [job.pk for job in (keeping, *rest)]
