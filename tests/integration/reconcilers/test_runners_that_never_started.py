"""Runners that die before any frame: noticed in seconds, retried unless they gave a reason."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.backends.base import ClusterPhase, ClusterView, Leftovers, NodeView
from jobs.backends.fake.backend import FakeBackend
from jobs.models import Attempt, Worker
from jobs.reconcilers import provisioning, queue, running
from jobs.statuses import EVIDENCE, JobStatus, StopReason, WorkerStatus
from tests.factories import make_job
from tests.integration.reconcilers.steps import later, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def submitted(fake):
    """Submit a queued job of two nodes."""
    return make_job(backend_name="fake", num_nodes=2)


@pytest.fixture
def started(fake, submitted, monkeypatch, time_machine):
    """Return a function that waits half a minute on machines like `nodes`, and checks them."""

    def look(*nodes: NodeView, seen_ago_s: float | None = None) -> Attempt:
        queue.run_pass()
        provisioning.step(submitted.pk)
        monkeypatch.setattr(
            FakeBackend, "observe", lambda *_, **__: ClusterView(ClusterPhase.UP, tuple(nodes))
        )
        monkeypatch.setattr(FakeBackend, "leftovers", lambda *_, **__: Leftovers())
        now = timezone.now() + timedelta(seconds=30)
        time_machine.move_to(now)
        attempt = submitted.attempts.get()
        if seen_ago_s is not None:
            seen = now - timedelta(seconds=seen_ago_s)
            Attempt.objects.update(contacted_at=seen, last_seen_at=seen)
            Worker.objects.create(attempt=attempt, rank=0, status=WorkerStatus.SETTING_UP)
        assert submitted.pk in running.due()
        running.step(submitted.pk)
        attempt.refresh_from_db()
        return attempt

    return look


def node(rank: int, *, alive: bool, detail: str = "") -> NodeView:
    return NodeView(rank, f"192.0.2.{rank}", alive=alive, detail=detail)


def test_a_first_runner_killed_before_its_first_word_is_a_lost_worker(started, submitted):
    attempt = started(node(0, alive=False))
    assert attempt.stop_reason == StopReason.WORKER_LOST
    assert status_of(submitted) == JobStatus.RECOVERING


def test_a_runner_killed_before_it_joined_is_missed_while_the_first_one_reports(started, submitted):
    attempt = started(node(0, alive=True), node(1, alive=False), seen_ago_s=1)
    assert attempt.stop_reason == StopReason.WORKER_LOST
    assert "rank 1" in attempt.message
    assert status_of(submitted) == JobStatus.RECOVERING


def test_a_runner_that_says_why_it_cannot_start_is_not_tried_again(started, submitted):
    said = "ImportError: libpython3.11.so"
    attempt = started(node(0, alive=True), node(1, alive=False, detail=said), seen_ago_s=1)
    assert attempt.stop_reason == StopReason.BACKEND
    assert status_of(submitted) == JobStatus.FAILED
    assert submitted.events.get(verb=EVIDENCE).message == said


def test_what_is_known_of_other_ranks_does_not_count_while_the_first_one_is_silent(
    started, submitted
):
    # Their words may wait on the first host, where the portal could not be reached.
    attempt = started(node(0, alive=True), node(1, alive=False), seen_ago_s=20)
    assert attempt.ended_at is None
    assert status_of(submitted) == JobStatus.SETTING_UP


def test_a_runner_that_has_reported_may_go_before_the_first_one(started, submitted):
    attempt = started(node(0, alive=False, detail=""), seen_ago_s=1)
    assert attempt.ended_at is None
    assert status_of(submitted) == JobStatus.SETTING_UP


def test_the_time_that_machines_take_to_come_up_is_not_a_runners_silence(
    fake, submitted, monkeypatch, time_machine
):
    queue.run_pass()
    # A launch takes minutes, and the runner's first word comes some seconds after it.
    later(time_machine, minutes=3)
    provisioning.step(submitted.pk)
    requested = []
    monkeypatch.setattr(FakeBackend, "observe", lambda *_, **__: requested.append(1))
    later(time_machine, seconds=8)
    running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.SETTING_UP
    assert requested == []
