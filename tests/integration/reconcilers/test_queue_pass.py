"""Times of scheduling passes: at once, then after a rest, and never two at a time."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.background import hints, pace
from jobs.ground import clock
from jobs.models import Job
from jobs.models.startable_jobs import startable_jobs
from jobs.queueing.limits import REQUEST_COLUMNS
from jobs.reconcilers import queue
from jobs.statuses import JobStatus
from tests.factories import make_job


@pytest.fixture
def wakes(monkeypatch):
    """Record the hints that the queue sends itself: the delay and the hint."""
    sent: list[tuple] = []
    monkeypatch.setattr(hints, "_send_later", lambda *hint: sent.append(hint))
    monkeypatch.setattr(hints, "_send", lambda *hint: sent.append((0, *hint)))
    return sent


pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake", "redis_client")]


def started() -> int:
    return Job.objects.exclude(status=JobStatus.QUEUED).count()


def test_a_job_is_planned_at_once(wakes):
    make_job()
    queue.step()
    assert started() == 1
    assert wakes == []


def test_what_comes_after_a_pass_has_begun_asks_for_another(wakes):
    for _ in range(2):
        hints.wake("queue")
    queue.step()
    hints.wake("queue")
    assert wakes == [(0, "queue", None)] * 2


def test_hints_during_a_rest_are_put_off_to_its_end_and_become_one_pass(wakes):
    make_job()
    queue.step()
    pace.rest_after(1)
    make_job()
    for _ in range(5):
        queue.step()
    assert started() == 1
    ((delay_s, *hint),) = wakes
    assert hint == ["queue", None]
    assert 0 < delay_s <= pace.LONGEST_REST_S


def test_a_hint_that_met_a_pass_holds_back_none_that_meets_the_rest_after_it(wakes, monkeypatch):
    make_job()
    with monkeypatch.context() as busy:
        busy.setattr(queue, "exclusive", lambda *_: nullcontext(enter_result=False))
        queue.step()
        queue.step()
    pace.rest_after(0.1)
    queue.step()
    waits = [delay_s for delay_s, *_ in wakes]
    assert len(waits) == 2
    assert waits[0] == queue.LOOK_AGAIN_S
    assert 0 < waits[1] <= pace.rest_s(0.1)


def test_what_a_process_knows_of_a_queue_goes_with_it():
    job = make_job()
    with queue._rows() as rows:
        rows.read(startable_jobs(clock.now()), REQUEST_COLUMNS)
        assert list(rows.known) == [job.pk]
    job.delete()
    queue.step()
    assert queue._ROWS.known == {}


def test_after_a_pass_that_failed_the_next_one_asks_for_everything(monkeypatch):
    make_job()
    with monkeypatch.context() as broken:
        broken.setattr(queue, "plan", Mock(side_effect=ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            queue.run_pass()
    assert queue._ROWS.known == {}
    assert gc.isenabled()
    queue.run_pass()
    assert started() == 1


def test_a_second_thread_in_a_pass_knows_nothing_and_changes_nothing_of_the_first():
    make_job()
    with queue._rows() as mine, queue._rows() as other:
        assert mine is queue._ROWS
        assert other is not mine
    with queue._rows() as again:
        assert again is mine


def test_a_quick_pass_is_followed_by_a_short_rest_and_a_long_one_by_a_second():
    assert [pace.rest_s(s) for s in (0.001, 0.1, 3.0)] == [0.05, 0.4, 1.0]


def test_a_tick_over_an_empty_queue_does_not_delay_the_next_job(wakes):
    queue.step()
    make_job()
    queue.step()
    assert started() == 1


def test_without_redis_every_hint_plans(wakes, monkeypatch):
    monkeypatch.setattr(
        pace, "connection", lambda: redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    )
    for _ in range(2):
        make_job()
        queue.step()
    assert started() == 2


def test_a_job_moved_between_plan_and_start_is_left_alone(monkeypatch, fake):
    job = make_job()
    snapshot = queue.load_snapshot()
    Job.objects.filter(pk=job.pk).update(status=JobStatus.CANCELLED, ended_at=job.created_at)
    monkeypatch.setattr(queue, "load_snapshot", lambda **_: snapshot)
    queue.run_pass()
    job.refresh_from_db()
    assert job.status == JobStatus.CANCELLED
    assert not job.attempts.exists()
