"""Cancelling at every point of a job's life, over the fake backend."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.fake.backend import FakePlan
from jobs.logs.cursor import START
from jobs.logs.write import append
from jobs.models import Attempt, Cluster
from jobs.permissions import Actor
from jobs.readers.job_log import log_after
from jobs.reconcilers import provisioning, queue, running, stopping
from jobs.statuses import ClusterStatus, JobStatus, StopReason
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db


def test_cancelling_a_queued_job_never_touches_the_backend(fake, tick, submitted):
    cancel_job(Actor(submitted.submitted_by), submitted)
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert fake.calls() == []


def test_cancelling_a_running_job_asks_it_to_stop_and_takes_its_machines_away(
    fake, tick, submitted
):
    tick()
    push(fake, submitted)
    tick()
    cancel_job(Actor(submitted.submitted_by), submitted)
    for _ in range(3):
        tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert submitted.stop_reason == StopReason.CANCELLED_BY_USER
    assert [verb for verb, _ in fake.calls()] == ["launch", "stop", "tear_down"]


def test_a_runner_that_does_not_stop_is_taken_away_in_the_end(fake, tick, submitted, time_machine):
    fake.set_plan(FakePlan(stop_s=3600))
    tick()
    push(fake, submitted)
    tick()
    cancel_job(Actor(submitted.submitted_by), submitted)
    stopping.step(submitted.pk)
    assert status_of(submitted) == JobStatus.STOPPING
    time_machine.move_to(timezone.now() + timedelta(seconds=stopping.GRACE_S + 11))
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_frames_that_cannot_be_stored_keep_no_job_from_its_end(
    fake, tick, submitted, time_machine, monkeypatch
):
    def refuse(head, lines):
        if any("poison" in line for line in lines):
            raise OperationalError("terminating connection")
        append(head, lines)

    monkeypatch.setattr("jobs.actions.ingest.ingest_frames.append", refuse)
    fake.set_plan(FakePlan(lines=("first", "poison", "last")))
    tick()
    tick()
    cancel_job(Actor(submitted.submitted_by), submitted)
    tick()
    time_machine.move_to(timezone.now() + timedelta(minutes=5))
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    texts = [line.text for line in log_after(submitted.pk, START, 100).lines]
    assert "first" in texts and "last" in texts and "poison" not in texts


def test_a_job_cancelled_while_its_machines_come_up_never_runs(fake, tick, submitted):
    fake.set_plan(FakePlan(start_s=3600))
    tick()
    cancel_job(Actor(submitted.submitted_by), submitted)
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_a_runner_that_has_spoken_is_queried_before_its_launch_is_known_to_be_over(
    fake, tick, submitted
):
    fake.set_plan(FakePlan(start_s=3600))
    tick()
    push(fake, submitted)
    cancel_job(Actor(submitted.submitted_by), submitted)
    stopping.step(submitted.pk)
    assert status_of(submitted) == JobStatus.STOPPING
    assert [verb for verb, _ in fake.calls()] == ["launch", "stop"]


def test_one_that_does_not_stop_before_its_launch_is_over_is_taken_away_in_the_end(
    fake, tick, submitted, time_machine
):
    fake.set_plan(FakePlan(start_s=3600, stop_s=3600))
    tick()
    push(fake, submitted)
    cancel_job(Actor(submitted.submitted_by), submitted)
    stopping.step(submitted.pk)
    time_machine.move_to(timezone.now() + timedelta(seconds=stopping.GRACE_S + 11))
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_a_cancel_that_overtakes_the_verdict_wins_and_nothing_is_lost(fake, submitted):
    queue.run_pass()
    provisioning.step(submitted.pk)
    push(fake, submitted)
    running.step(submitted.pk)
    Attempt.objects.update(ended_at=timezone.now(), stop_reason=StopReason.COMPLETED)
    cancel_job(Actor(submitted.submitted_by), submitted)
    running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.STOPPING
    stopping.step(submitted.pk)
    assert status_of(submitted) == JobStatus.CANCELLED
