"""Reconcilers at odd moments: crashes between statements, rows that don't fit."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.base import ClusterPhase, ClusterView, LaunchRequest, Leftovers, NodeView
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.background import hints
from jobs.models import Attempt, Cluster, Job, Worker
from jobs.permissions import Actor
from jobs.policies.endings import LONGEST_RETRY_DELAY_S, retry_delay_s
from jobs.reconcilers import provisioning, queue, running
from jobs.statuses import EVIDENCE, JobStatus, StopReason, WorkerStatus
from tests.factories import make_job
from tests.integration.reconcilers.steps import push, status_of, verbs

pytestmark = pytest.mark.django_db


def test_a_verdict_that_overtakes_the_launch_is_taken_all_the_same(fake, tick, submitted):
    fake.set_plan(FakePlan(run_s=0, exit_code=3))
    queue.run_pass()
    provisioning.step(submitted.pk)
    # The process died before it stored that the machines are there; the runner went on.
    Job.objects.filter(pk=submitted.pk).update(status=JobStatus.PROVISIONING)
    push(fake, submitted)
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert submitted.exit_code == 3


def test_an_attempt_that_has_spoken_is_not_launched_again_when_its_machines_are_gone_at_once(
    fake, submitted, monkeypatch
):
    queue.run_pass()
    provisioning.step(submitted.pk)
    push(fake, submitted)
    # The process died before it stored that the machines are there; then they were taken away.
    Job.objects.filter(pk=submitted.pk).update(status=JobStatus.PROVISIONING)
    monkeypatch.setattr(FakeBackend, "observe", lambda *_, **__: ClusterView(ClusterPhase.GONE))
    provisioning.step(submitted.pk)
    assert status_of(submitted) == JobStatus.RUNNING
    assert verbs(fake).count("launch") == 1


def test_what_is_seen_of_machines_is_kept_where_their_job_is_cancelled_in_that_moment(
    fake, submitted, monkeypatch
):
    fake.set_price("3.60")
    queue.run_pass()
    launch = FakeBackend.launch

    def cancel_after_it(backend: FakeBackend, request: LaunchRequest) -> None:
        launch(backend, request)
        cancel_job(Actor(submitted.submitted_by), Job.objects.get(pk=submitted.pk))

    monkeypatch.setattr(FakeBackend, "launch", cancel_after_it)
    provisioning.step(submitted.pk)
    cluster = Cluster.objects.get()
    assert status_of(submitted) == JobStatus.STOPPING
    assert (cluster.infra, cluster.usd_per_hour) == ("fake", Decimal("3.60"))


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

    def start_some(job, **planned):
        if job == bad:
            raise RuntimeError
        return start(job, **planned)

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


def test_what_a_runner_said_before_its_machines_were_seen_is_looked_at_after_it(monkeypatch):
    requested = []
    monkeypatch.setattr(provisioning, "wake", lambda *args: requested.append(args))
    job = make_job(status=JobStatus.SETTING_UP)
    provisioning.step(job.pk)
    assert requested == [("running", job.pk)]


@pytest.mark.usefixtures("redis_client")
def test_however_many_find_a_row_taken_one_comes_back(monkeypatch):
    job, sent = make_job(status=JobStatus.PROVISIONING), []
    monkeypatch.setattr(hints, "_send_later", lambda *hint: sent.append(hint))
    monkeypatch.setattr(provisioning, "exclusive", lambda *_: nullcontext(False))
    for _ in range(5):
        provisioning.step(job.pk)
    assert sent == [(0.3, "provisioning", job.pk)]


def test_a_runner_that_dies_at_its_start_ends_the_job_with_what_it_printed(
    fake, submitted, time_machine, monkeypatch
):
    queue.run_pass()
    provisioning.step(submitted.pk)
    dead = NodeView(0, "192.0.2.1", alive=False, detail="ImportError: libpython3.11.so")
    view = ClusterView(ClusterPhase.ENDED, (dead,))
    monkeypatch.setattr(FakeBackend, "observe", lambda *_, **__: view)
    monkeypatch.setattr(FakeBackend, "leftovers", lambda *_, **__: Leftovers())
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.FAILED
    assert (submitted.stop_reason, submitted.recovery_count) == (StopReason.BACKEND, 0)
    assert submitted.events.get(verb=EVIDENCE).message == "ImportError: libpython3.11.so"


def test_no_worker_outlives_its_attempt(fake, tick, submitted):
    fake.set_plan(FakePlan(run_s=0, exit_code=1))
    queue.run_pass()
    provisioning.step(submitted.pk)
    attempt = submitted.attempts.get()
    Worker.objects.create(attempt=attempt, rank=7, status=WorkerStatus.SETTING_UP)
    push(fake, submitted)
    assert not Worker.objects.filter(ended_at=None).exists()
    assert Worker.objects.get(rank=7).status == WorkerStatus.EXITED
