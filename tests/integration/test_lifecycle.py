"""Every edge of the transition table, and every one that is missing."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from django.db import transaction

from jobs.errors import IllegalMoveError, StaleJobError
from jobs.lifecycle import MOVES, move
from jobs.models import Job, JobEvent
from jobs.statuses import JobStatus, StopReason
from tests.each_case import check_each
from tests.factories import make_attempt, make_job
from tests.undone import undone

pytestmark = pytest.mark.django_db

# The table of docs/explanation/job-lifecycle.md, written out once more: a test can fail.
EDGES = {
    "QUEUED": "PROVISIONING CANCELLED FAILED",
    "PROVISIONING": "SETTING_UP QUEUED RECOVERING STOPPING FAILED",
    "SETTING_UP": "RUNNING RECOVERING STOPPING FAILED",
    "RUNNING": "SUCCEEDED FAILED RECOVERING STOPPING",
    "RECOVERING": "PROVISIONING STOPPING FAILED",
    "STOPPING": "CANCELLED FAILED SUCCEEDED QUEUED",
}


@pytest.mark.parametrize("old", JobStatus)
def test_a_job_moves_along_an_edge_and_along_nothing_else(old):
    job = make_job(status=old)

    def check(new: JobStatus) -> None:
        moved = Job.objects.get(pk=job.pk)
        with undone():
            if new.value in EDGES.get(old.value, "").split():
                move(moved, new, reason=StopReason.BACKEND, message="because")
                event = JobEvent.objects.get(job=job)
                assert (event.old_status, event.new_status, event.message) == (old, new, "because")
            else:
                with pytest.raises(IllegalMoveError):
                    move(moved, new)
                assert not JobEvent.objects.filter(job=job).exists()
            assert moved.status == Job.objects.get(pk=job.pk).status

    check_each(JobStatus, check)


def test_no_final_status_has_a_way_out():
    assert not any(status.is_final for status in MOVES)


def test_of_two_moves_of_the_same_job_one_wins_and_the_other_raises():
    job = make_job(status=JobStatus.RUNNING)
    late = Job.objects.get(pk=job.pk)
    move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
    with pytest.raises(StaleJobError):
        move(late, JobStatus.FAILED, reason=StopReason.USER_CODE)
    job.refresh_from_db()
    assert (job.status, job.stop_reason) == (JobStatus.SUCCEEDED, StopReason.COMPLETED)
    assert JobEvent.objects.filter(job=job).count() == 1


def test_the_loser_of_a_move_can_go_on_in_its_transaction():
    job = make_job(status=JobStatus.RUNNING)
    late = Job.objects.get(pk=job.pk)
    move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
    with transaction.atomic():
        with pytest.raises(StaleJobError):
            move(late, JobStatus.FAILED, reason=StopReason.USER_CODE)
        Job.objects.filter(pk=job.pk).update(hint="seen")
    job.refresh_from_db()
    assert job.hint == "seen"


def test_a_move_whose_history_cannot_be_kept_has_not_happened(monkeypatch):
    job = make_job()
    monkeypatch.setattr(JobEvent.objects, "create", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        move(job, JobStatus.PROVISIONING)
    assert Job.objects.get(pk=job.pk).status == job.status == JobStatus.QUEUED


def test_the_moments_of_a_job_are_kept_by_its_moves():
    job = make_job()
    move(job, JobStatus.PROVISIONING)
    started = job.started_at
    move(job, JobStatus.RECOVERING)
    move(job, JobStatus.PROVISIONING)
    assert job.started_at == started is not None
    assert job.ended_at is None
    move(job, JobStatus.FAILED)
    assert job.ended_at is not None


def test_every_reason_leads_to_a_status_that_stopping_can_reach():
    def check(reason: StopReason) -> None:
        assert reason.final_status in MOVES[JobStatus.STOPPING]

    check_each(StopReason, check)


def test_who_slept_through_the_end_of_an_attempt_does_not_move_the_next_one():
    job = make_job(status=JobStatus.PROVISIONING)
    first = make_attempt(job)
    late = Job.objects.get(pk=job.pk)
    move(job, JobStatus.RECOVERING, attempt=first, reason=StopReason.WORKER_LOST)
    first.ended_at = job.created_at
    first.save(update_fields=["ended_at"])
    second = make_attempt(job)
    move(job, JobStatus.PROVISIONING, attempt=second)
    with pytest.raises(StaleJobError):
        move(late, JobStatus.FAILED, attempt=first, reason=StopReason.BACKEND)
    assert Job.objects.get(pk=job.pk).status == JobStatus.PROVISIONING
