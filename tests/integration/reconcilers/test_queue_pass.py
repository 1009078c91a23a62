"""When the queue is planned: at once, then at most once a second, and never by two at a time."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.reconcilers import queue
from jobs.statuses import JobStatus
from tests.factories import make_job


@pytest.fixture
def wakes(monkeypatch):
    """What the queue asked to be woken for."""
    asked: list[tuple] = []
    monkeypatch.setattr(queue, "wake", lambda *args, **kwargs: asked.append((args, kwargs)))
    return asked


pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake", "redis_client")]


def started() -> int:
    return Job.objects.exclude(status=JobStatus.QUEUED).count()


def test_a_job_is_planned_at_once(wakes):
    make_job()
    queue.step()
    assert started() == 1
    assert wakes == []


def test_a_second_pass_within_a_second_is_put_off_once_however_many_hints_come(wakes):
    make_job()
    queue.step()
    make_job()
    for _ in range(5):
        queue.step()
    assert started() == 1
    assert wakes == [(("queue",), {"delay_s": queue.PASS_EVERY_S})]


def test_a_tick_over_an_empty_queue_does_not_delay_the_next_job(wakes):
    queue.step()
    make_job()
    queue.step()
    assert started() == 1


def test_without_redis_every_hint_plans(wakes, monkeypatch):
    def away(*args, **kwargs):
        raise ConnectionError

    monkeypatch.setattr(queue.cache, "add", away)
    make_job()
    queue.step()
    make_job()
    queue.step()
    assert started() == 2


def test_a_job_moved_between_plan_and_start_is_left_alone(monkeypatch, fake):
    job = make_job()
    snapshot = queue.load_snapshot()
    Job.objects.filter(pk=job.pk).update(status=JobStatus.CANCELLED, ended_at=job.created_at)
    monkeypatch.setattr(queue, "load_snapshot", lambda: snapshot)
    queue.run_pass()
    job.refresh_from_db()
    assert job.status == JobStatus.CANCELLED
    assert not job.attempts.exists()
