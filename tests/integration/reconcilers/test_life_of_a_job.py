"""A whole job, from queued to its end and its cleanup: the reconcilers over the fake backend."""

from __future__ import annotations

import errno
import os
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.base import Leftovers
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.errors import BackendError
from jobs.lifecycle import move
from jobs.models import Attempt, AttemptStage, Cluster, Job, LogHead
from jobs.reconcilers import provisioning, queue, running
from jobs.statuses import ClusterStatus, JobStatus, StopReason, WaitReason
from tests.factories import make_attempt, make_job, make_spec
from tests.frame_bytes import body, frame
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db


def test_a_job_runs_and_leaves_nothing_behind(fake, tick, submitted):
    fake.set_plan(FakePlan(run_s=0, lines=("hello",)))
    tick()
    push(fake, submitted)
    tick()
    tick()
    assert status_of(submitted) == JobStatus.SUCCEEDED
    assert (submitted.exit_code, submitted.stop_reason) == (0, StopReason.COMPLETED)
    statuses = submitted.events.order_by("pk").values_list("new_status", flat=True)
    assert [s for s in statuses if s] == ["PROVISIONING", "SETTING_UP", "RUNNING", "SUCCEEDED"]
    cluster = Cluster.objects.get()
    assert cluster.status == ClusterStatus.GONE
    assert fake.calls()[-1] == ("tear_down", cluster.name)


def test_every_stage_of_an_ended_attempt_has_a_begin_and_an_end(fake, tick, submitted):
    fake.set_plan(FakePlan(run_s=0))
    tick()
    push(fake, submitted)
    tick()
    tick()
    stages = AttemptStage.objects.filter(attempt__job=submitted)
    assert {"launch", "run", "teardown"} <= set(stages.values_list("name", flat=True))
    assert all(stage.ended_at is not None for stage in stages)


def test_a_failing_program_fails_the_job_with_its_exit_code(fake, tick, submitted):
    fake.set_plan(FakePlan(run_s=0, exit_code=7))
    tick()
    push(fake, submitted)
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert (submitted.exit_code, submitted.stop_reason) == (7, StopReason.USER_CODE)


def test_a_failing_program_is_tried_again_as_often_as_its_spec_says(fake, tick, time_machine):
    spec = make_spec(portal={"retry": {"max_attempts": 2}})
    job = make_job(backend_name="fake", spec=spec)
    fake.set_plan(FakePlan(run_s=0, exit_code=1))
    for _ in range(2):
        tick()
        push(fake, job)
        tick()
        tick()
        time_machine.move_to(timezone.now() + timedelta(seconds=10))
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert (job.attempts.count(), job.failure_count) == (2, 1)


def test_lost_machines_are_recovered_on_a_new_cluster_after_the_old_one_is_gone(
    fake, tick, submitted, time_machine
):
    tick()
    push(fake, submitted)
    tick()
    first = Cluster.objects.get()
    fake.lose(first.name)
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    tick()
    assert status_of(submitted) in {JobStatus.RECOVERING, JobStatus.PROVISIONING}
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    tick()
    tick()
    assert submitted.attempts.count() == 2
    assert submitted.attempts.get(number=1).stop_reason == StopReason.WORKER_LOST
    assert submitted.attempts.get(number=2).cluster != first
    status_of(submitted)
    assert (submitted.recovery_count, submitted.failure_count) == (1, 0)


def test_a_silent_runner_that_the_backend_sees_alive_is_left_alone(
    fake, tick, submitted, time_machine
):
    tick()
    push(fake, submitted)
    time_machine.move_to(timezone.now() + timedelta(hours=1))
    tick()
    assert status_of(submitted) == JobStatus.RUNNING


def test_a_verdict_left_on_a_dead_runners_disk_is_taken(fake, tick, submitted, time_machine):
    fake.set_plan(FakePlan(run_s=1, exit_code=3, lines=("last lines",)))
    tick()
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    tick()
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert submitted.exit_code == 3


def test_a_frame_cut_in_half_on_a_dead_runners_disk_costs_itself_alone(
    fake, tick, submitted, time_machine, monkeypatch
):
    fake.set_plan(FakePlan(run_s=1, exit_code=3, lines=("first", "last lines")))
    whole = FakeBackend.leftovers

    def torn(self, name, **which):
        first, *rest = whole(self, name, **which).frames
        return Leftovers([first, first[:20], *rest])

    monkeypatch.setattr(FakeBackend, "leftovers", torn)
    tick()
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert submitted.exit_code == 3


def test_a_job_that_runs_longer_than_it_may_is_stopped_and_failed(fake, tick, time_machine):
    job = make_job(backend_name="fake", spec=make_spec(portal={"max_duration": "1h"}))
    tick()
    push(fake, job)
    tick()
    time_machine.move_to(timezone.now() + timedelta(hours=1, minutes=1))
    for _ in range(4):
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.TIMEOUT
    assert "max_duration" in job.message


def test_a_refused_launch_fails_the_job_with_the_backends_words(fake, tick, submitted):
    fake.set_plan(FakePlan(launch_error="The partition is closed."))
    tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert (submitted.stop_reason, submitted.message) == (
        StopReason.BACKEND,
        "The partition is closed.",
    )
    tick()
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_a_launch_that_fails_by_a_bug_of_ours_fails_the_job_and_frees_its_machines(
    fake, tick, submitted, monkeypatch
):
    def broken(*_args):
        raise ValueError("no such field")

    monkeypatch.setattr(FakeBackend, "launch", broken)
    for _ in range(2):
        tick()
    assert status_of(submitted) == JobStatus.FAILED
    assert "ValueError: no such field" in submitted.message
    assert Cluster.objects.get().status == ClusterStatus.GONE


@pytest.mark.parametrize("errno_of", [errno.ENOSPC, errno.EDQUOT])
def test_a_launch_that_meets_a_full_disk_is_repeated_once_there_is_room(
    fake, tick, submitted, time_machine, monkeypatch, errno_of
):
    launch = FakeBackend.launch

    def full(*_args):
        try:
            raise OSError(errno_of, os.strerror(errno_of))
        except OSError as error:
            raise BackendError("This machine could not take the job.") from error

    monkeypatch.setattr(FakeBackend, "launch", full)
    tick()
    assert status_of(submitted) == JobStatus.QUEUED
    assert submitted.wait_reason == WaitReason.BACKOFF
    tick()
    assert Cluster.objects.get().status == ClusterStatus.GONE
    monkeypatch.setattr(FakeBackend, "launch", launch)
    time_machine.move_to(timezone.now() + timedelta(seconds=3))
    tick()
    assert status_of(submitted) in {JobStatus.PROVISIONING, JobStatus.SETTING_UP}


def test_without_room_at_launch_the_job_waits_and_is_tried_again(
    fake, tick, submitted, time_machine, monkeypatch
):
    queue.run_pass()
    fake.set_capacity(0)
    provisioning.step(submitted.pk)
    assert status_of(submitted) == JobStatus.QUEUED
    assert submitted.wait_reason == WaitReason.BACKOFF
    fake.set_capacity(4)
    tick()
    assert status_of(submitted) == JobStatus.QUEUED
    time_machine.move_to(timezone.now() + timedelta(seconds=5))
    tick()
    assert status_of(submitted) == JobStatus.SETTING_UP


def test_a_full_backend_lets_the_job_wait_and_says_why(fake, tick):
    fake.set_capacity(2)
    first, second = make_job(num_nodes=2), make_job(num_nodes=1)
    tick()
    assert status_of(second) == JobStatus.QUEUED
    assert second.message == "Needs 1 node; 0 of 2 are free on fake."
    fake.finish(first.attempts.get().cluster.name)
    push(fake, first)
    for _ in range(3):
        tick()
    assert status_of(second) != JobStatus.QUEUED


def test_a_launch_repeated_after_a_crash_makes_no_second_cluster(fake, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    # The process died before it stored its request.
    Job.objects.filter(pk=submitted.pk).update(status=JobStatus.PROVISIONING)
    provisioning.step(submitted.pk)
    assert status_of(submitted) == JobStatus.SETTING_UP
    assert [verb for verb, _ in fake.calls()].count("launch") == 1


def test_an_unannounced_verdict_is_found_by_the_next_tick(fake, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    push(fake, submitted)
    running.step(submitted.pk)
    Attempt.objects.update(ended_at=timezone.now(), stop_reason=StopReason.COMPLETED)
    assert running.due() == [submitted.pk]


def test_a_runner_stopped_from_outside_counts_as_lost_not_as_cancelled(fake, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    push(fake, submitted)
    running.step(submitted.pk)
    attempt = submitted.attempts.get()
    acked = LogHead.objects.get(pk=attempt.pk).acked["0"]
    last = frame(acked + 1, "end", reason="CANCELLED_BY_USER", exit_code=None)
    ingest_frames(attempt.pk, attempt_token(submitted.pk, 1), body(last))
    running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.RECOVERING
    attempt.refresh_from_db()
    assert attempt.stop_reason == StopReason.WORKER_LOST
    assert "from outside the portal" in attempt.message


def test_an_attempt_is_open_once_at_a_time(fake):
    job = make_job(status=JobStatus.RUNNING)
    make_attempt(job)
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError), transaction.atomic():
        make_attempt(job)
    move(job, JobStatus.FAILED)
