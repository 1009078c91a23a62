"""What the reconcilers make of odd moments: crashes between statements, rows that don't fit."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from django.utils import timezone

from jobs.actions.cancel import cancel_job
from jobs.backends.fake import FakePlan
from jobs.models import Attempt, Job
from jobs.permissions import Actor
from jobs.policies.endings import LONGEST_RETRY_DELAY_S, retry_delay_s
from jobs.reconcilers import pace, provisioning, queue, running
from jobs.statuses import JobStatus, StopReason
from tests.factories import make_job
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db


def test_a_verdict_that_overtakes_the_launch_is_taken_all_the_same(fake, tick, submitted):
    fake.plan(FakePlan(run_s=0, exit_code=3))
    queue.run_pass()
    provisioning.step(submitted.pk)
    # The process died before it stored that the machines are there; the runner went on.
    Job.objects.filter(pk=submitted.pk).update(status=JobStatus.PROVISIONING)
    push(fake, submitted)
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert submitted.exit_code == 3


def test_a_success_without_a_word_of_the_run_is_a_success(fake, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    Attempt.objects.update(ended_at=timezone.now(), stop_reason=StopReason.COMPLETED)
    running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.SUCCEEDED


def test_a_job_may_wait_for_room_for_ever():
    assert retry_delay_s(5000) == LONGEST_RETRY_DELAY_S


def test_a_queued_job_of_a_backend_that_was_switched_off_holds_up_no_others(fake, settings):
    settings.MPORTAL_LOCAL_BACKEND = False
    orphan, job = make_job(backend_name="local"), make_job(backend_name="fake")
    queue.run_pass()
    assert status_of(job) == JobStatus.PROVISIONING
    assert status_of(orphan) == JobStatus.QUEUED
    assert "not enabled" in orphan.message


def test_one_job_that_cannot_be_started_holds_up_no_others(fake, monkeypatch):
    bad, good = make_job(), make_job()
    start = queue.start_attempt

    def start_some(job):
        if job == bad:
            raise RuntimeError
        return start(job)

    monkeypatch.setattr(queue, "start_attempt", start_some)
    queue.run_pass()
    assert status_of(good) == JobStatus.PROVISIONING


def test_cancelling_between_two_attempts_leaves_the_last_ones_verdict(fake, tick, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    Attempt.objects.update(
        ended_at=timezone.now(), stop_reason=StopReason.WORKER_LOST, message="Rank 1 was lost."
    )
    running.step(submitted.pk)
    cancel_job(Actor(submitted.submitted_by), submitted)
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert submitted.attempts.get().stop_reason == StopReason.WORKER_LOST


@pytest.mark.usefixtures("redis_client")
def test_however_many_find_a_row_taken_one_comes_back(monkeypatch):
    job, sent = make_job(status=JobStatus.PROVISIONING), []
    monkeypatch.setattr(pace, "wake", lambda *args, **kwargs: sent.append((args, kwargs)))
    monkeypatch.setattr(provisioning, "exclusive", lambda *_: nullcontext(False))
    for _ in range(5):
        provisioning.step(job.pk)
    assert sent == [(("provisioning", job.pk), {"delay_s": 0.3})]
