"""A loss that repeats on live hosts ends its job; other losses go on being recovered."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.statuses import JobStatus, StopReason
from tests.factories import make_job, make_spec
from tests.frame_bytes import body, frame
from tests.integration.reconcilers.steps import status_of

pytestmark = pytest.mark.django_db
SEGFAULT = "worker of rank 1: exit code 139 (stage run)"


@pytest.fixture
def lose(tick, time_machine):
    """Let the job's next attempt end by a loss that the runner reports with `crash`."""

    def lose(job, crash):
        for _ in range(3):
            tick()
        attempt = job.attempts.order_by("-number")[0]
        assert attempt.ended_at is None
        end = frame(1, "end", reason="WORKER_LOST", message="A worker was lost.", crash=crash)
        ingest_frames(attempt.pk, attempt_token(job.pk, attempt.number), body(end))
        tick()
        time_machine.move_to(timezone.now() + timedelta(minutes=5))
        return status_of(job)

    return lose


def test_the_same_crash_twice_in_the_same_place_ends_the_job(submitted, lose):
    assert lose(submitted, SEGFAULT) == JobStatus.RECOVERING
    assert lose(submitted, SEGFAULT) == JobStatus.FAILED
    assert submitted.stop_reason == StopReason.WORKER_LOST
    assert submitted.message.endswith("Attempt 1 ended the same way: no further try.")
    assert (submitted.failure_count, submitted.recovery_count) == (0, 1)


def test_a_lost_host_between_two_same_crashes_does_not_hide_them(submitted, lose):
    assert lose(submitted, SEGFAULT) == JobStatus.RECOVERING
    assert lose(submitted, "") == JobStatus.RECOVERING
    assert lose(submitted, SEGFAULT) == JobStatus.FAILED
    assert "Attempt 1 ended the same way" in submitted.message


@pytest.mark.parametrize(
    "crashes",
    [
        ["", "", ""],
        [SEGFAULT, SEGFAULT.replace("rank 1", "rank 0"), SEGFAULT],
        [SEGFAULT, SEGFAULT.replace("139", "134")],
        [SEGFAULT.replace("run", "workers"), SEGFAULT],
    ],
    ids=["hosts", "another rank", "another signal", "another stage"],
)
def test_different_losses_are_recovered(submitted, lose, crashes):
    assert {lose(submitted, crash) for crash in crashes} == {JobStatus.RECOVERING}


def test_a_repeated_crash_uses_the_tries_that_the_job_allows_for_failures(fake, lose):
    job = make_job(backend_name="fake", spec=make_spec(portal={"retry": {"max_attempts": 2}}))
    assert lose(job, SEGFAULT) == JobStatus.RECOVERING
    assert lose(job, SEGFAULT) == JobStatus.RECOVERING
    assert (job.failure_count, job.recovery_count) == (1, 1)
    assert lose(job, SEGFAULT) == JobStatus.FAILED
    assert "Attempt 2 ended the same way" in job.message
