"""Changes that reports make: stages, workers, the attempt's verdict; and the hints they send."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from jobs.actions.attempts.end_attempt import close_attempt
from jobs.background import hints
from jobs.models import Attempt, Job, JobEvent
from jobs.readers.job_page import attempts_of
from jobs.statuses import StageName, StopReason, WorkerStatus
from tests.frame_bytes import T0, frame

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Record the hints that were sent, in order."""
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(hints, "wake", lambda name, row=None, **_: sent.append((name, row)))
    return sent


@pytest.fixture
def attempt(attempt: Attempt) -> Attempt:
    """Set the attempt's creation before its frames, as in production."""
    Attempt.objects.filter(pk=attempt.pk).update(created_at=at(0))
    attempt.refresh_from_db()
    return attempt


def at(seq: int) -> datetime:
    return datetime.fromtimestamp(T0 + seq / 100, timezone.utc)


def stage(seq: int, name: str, phase: str, **fields: Any) -> dict[str, Any]:
    return frame(seq, "stage", stage=name, phase=phase, **fields)


def end(seq: int, reason: str, **fields: Any) -> dict[str, Any]:
    return frame(seq, "end", reason=reason, **fields)


@pytest.mark.feature("S0.3")
def test_stages_have_their_times_by_the_runners_clock_and_why_they_failed(attempt, post) -> None:
    post(stage(1, "setup", "begin"), stage(2, "setup", "end", ok=True, detail="3 packages"))
    post(stage(3, "workers", "begin"))
    post(stage(4, "workers", "end", ok=False, detail="rank 1 never listened"))
    setup = attempt.stages.get(name=StageName.SETUP)
    workers = attempt.stages.get(name=StageName.WORKERS)
    assert (setup.started_at, setup.ended_at, setup.detail) == (at(1), at(2), "3 packages")
    assert (setup.failure, workers.failure) == ("", "rank 1 never listened")
    assert (workers.started_at, workers.ended_at) == (at(3), at(4))


def test_a_clock_that_is_wrong_cannot_put_a_stage_before_the_attempt_or_in_the_future(
    attempt, post
) -> None:
    post({**stage(1, "setup", "begin"), "t": 10}, {**stage(2, "setup", "end"), "t": 2e10})
    row = attempt.stages.get()
    assert row.started_at == attempt.created_at
    assert row.ended_at <= datetime.now(timezone.utc)


@pytest.mark.django_db(transaction=True)
def test_first_contact_run_and_end_wake_the_reconciler_and_nothing_else_does(
    attempt, post, woken
) -> None:
    # Who looks after the machines passes it on to who follows the run.
    contact, running = ("provisioning", attempt.job_id), ("running", attempt.job_id)
    post()
    assert woken == [contact]
    post(frame(1), stage(2, "setup", "begin"), stage(3, "setup", "end"))
    assert woken == [contact]
    post(stage(4, "run", "begin"))
    assert woken == [contact, running]
    post(stage(5, "run", "end"), end(6, "COMPLETED", exit_code=0))
    assert woken == [contact, running, running]
    post(end(6, "COMPLETED", exit_code=0))
    assert woken == [contact, running, running]


@pytest.mark.django_db(transaction=True)
def test_a_full_tail_wakes_the_compactor_once_a_chunk(attempt, post, woken) -> None:
    post(frame(1))
    woken.clear()
    for seq in range(2, 80):
        post(frame(seq, text="x" * 30_000))
    assert woken == [("sealing", attempt.pk)] * 2


def test_run_begin_says_when_the_attempt_began_to_run(attempt, post) -> None:
    post(stage(1, "run", "begin"))
    post(stage(2, "run", "begin"))
    attempt.refresh_from_db()
    assert attempt.run_started_at == at(1)


def test_the_end_is_the_verdict_and_closes_the_stages_that_were_open(attempt, post) -> None:
    post(stage(1, "run", "begin"))
    post(
        frame(2, "exit", exit_code=7),
        end(3, "USER_CODE", exit_code=7, message="m", hint="h", evidence="Traceback\nBoom"),
    )
    attempt.refresh_from_db()
    assert (attempt.stop_reason, attempt.exit_code) == (StopReason.USER_CODE, 7)
    assert (attempt.message, attempt.hint, attempt.ended_at) == ("m", "h", at(3))
    run = attempt.stages.get(name=StageName.RUN)
    assert (run.ended_at, run.failure) == (at(3), "m")
    assert "Boom" in JobEvent.objects.get(attempt=attempt).message


@pytest.mark.parametrize(
    ("reason", "state"),
    [(StopReason.WORKER_LOST, "failed"), (StopReason.CANCELLED_BY_USER, "stopped")],
)
def test_no_stage_outlives_an_attempt_that_the_portal_has_ended(attempt, post, reason, state):
    post(stage(1, "setup", "begin"))
    close_attempt(attempt, reason, "gone")
    post(stage(2, "run", "begin"))  # sent before, and late
    attempt.stages.create(name=StageName.TEARDOWN, started_at=at(3))
    [shown] = attempts_of(attempt.job)
    stages = {each.name: each for each in shown.stages if each.state != "pending"}
    assert {each.name: each.state for each in stages.values()} == {
        "setup": state, "run": state, "teardown": "active",
    }  # fmt: skip
    assert stages["setup"].ended_at == attempt.ended_at
    assert stages["setup"].duration_s == (attempt.ended_at - at(1)).total_seconds()


def test_the_first_verdict_stays_whatever_its_source(attempt, post) -> None:
    close_attempt(attempt, StopReason.WORKER_LOST, "gone", "wait")
    post(end(1, "COMPLETED", exit_code=0))
    attempt.refresh_from_db()
    assert (attempt.stop_reason, attempt.message) == (StopReason.WORKER_LOST, "gone")
    assert attempt.exit_code is None


def test_ingest_never_moves_the_job(attempt, post) -> None:
    before = Job.objects.values().get(pk=attempt.job_id)
    post(stage(1, "run", "begin"), end(2, "USER_CODE", exit_code=1))
    assert Job.objects.values().get(pk=attempt.job_id) == before


def test_workers_are_made_when_they_are_first_heard_of(attempt, post) -> None:
    post(
        frame(1, "worker", status="READY", address="127.64.1.10:22222", mesh="trainers", pid=5),
        frame(1, "worker", rank=1, status="SETTING_UP", python="3.11"),
    )
    post(frame(2, "worker", rank=1, status="RUNNING"), frame(3, "exit", rank=1, exit_code=139))
    first, second = attempt.workers.order_by("rank")
    assert (first.status, first.address, first.mesh) == ("READY", "127.64.1.10:22222", "trainers")
    assert (first.ready_at, first.pid) == (at(1), 5)
    assert (second.status, second.python, second.exit_code) == ("RUNNING", "3.11", 139)


def test_rank_0_may_say_that_a_peer_is_lost_but_not_after_the_peers_last_word(
    attempt, post
) -> None:
    lost: dict[str, Any] = {"status": "LOST", "about": 1, "detail": "silent for 15 s"}
    post(frame(1, "worker", **lost))
    worker = attempt.workers.get(rank=1)
    assert (worker.status, worker.detail, worker.ended_at) == ("LOST", "silent for 15 s", at(1))
    post(frame(1, "worker", rank=1, status="RUNNING"))
    assert attempt.workers.get(rank=1).ended_at is None
    post(frame(2, "worker", rank=1, status="EXITED", exit_code=0), frame(2, "worker", **lost))
    worker = attempt.workers.get(rank=1)
    assert (worker.status, worker.exit_code) == (WorkerStatus.EXITED, 0)
    assert not attempt.workers.filter(rank=0).exists()
