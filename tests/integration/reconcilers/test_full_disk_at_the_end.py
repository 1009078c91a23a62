"""Leftovers of a dead runner are not deleted because the portal's disk happens to be full."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.base import Leftovers
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.errors import FramesPostponedError
from jobs.logs.cursor import START
from jobs.models import Cluster
from jobs.permissions import Actor
from jobs.readers.job_log import log_after
from jobs.reconcilers.blocked import NO_ROOM
from jobs.statuses import JobStatus
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def full(monkeypatch):
    """Fill the disk so that frames do not fit; calling the result frees space."""

    def refuse() -> None:
        raise FramesPostponedError

    monkeypatch.setattr("jobs.actions.ingest.leftovers.require_room_for_frames", refuse)
    return lambda: monkeypatch.setattr(
        "jobs.actions.ingest.leftovers.require_room_for_frames", lambda: None
    )


def waits(job, tick) -> None:
    """Assert that the job keeps its machines while the disk is full, and reports it once."""
    status = status_of(job)
    for _ in range(3):
        tick()
    assert status_of(job) == status
    assert job.attempts.get().ended_at is None
    assert not Cluster.objects.exclude(release_requested_at=None).exists()
    assert job.events.filter(verb=NO_ROOM).count() == 1


def texts(job) -> list[str]:
    return [line.text for line in log_after(job.pk, START, 100).lines]


def test_an_attempt_whose_runner_died_ends_when_there_is_room_for_its_last_words(
    full, fake, tick, submitted, time_machine
):
    fake.set_plan(FakePlan(run_s=1, exit_code=3, lines=("last lines",)))
    tick()
    time_machine.move_to(timezone.now() + timedelta(seconds=30))
    waits(submitted, tick)
    full()
    tick()
    assert (status_of(submitted), submitted.exit_code) == (JobStatus.FAILED, 3)
    assert "last lines" in texts(submitted)


def test_a_cancelled_job_ends_when_there_is_room_for_its_last_words(
    full, fake, tick, submitted, time_machine
):
    fake.set_plan(FakePlan(lines=("last lines",)))
    tick()
    tick()
    cancel_job(Actor(submitted.submitted_by), submitted)
    tick()
    time_machine.move_to(timezone.now() + timedelta(minutes=5))
    waits(submitted, tick)
    full()
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert "last lines" in texts(submitted)


def test_a_full_disk_keeps_no_runner_that_has_nothing_left_to_report(
    full, fake, tick, submitted, monkeypatch
):
    tick()
    push(fake, submitted)
    cancel_job(Actor(submitted.submitted_by), submitted)
    monkeypatch.setattr(FakeBackend, "leftovers", lambda *_, **__: Leftovers())
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED
