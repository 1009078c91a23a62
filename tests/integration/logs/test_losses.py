"""Lines at the end of a log about ranks whose last frames never arrived."""

from __future__ import annotations

import pytest

from jobs.actions.attempts.end_attempt import close_attempt
from jobs.logs.reading import read_lines
from jobs.models import Attempt, Job
from jobs.statuses import JobStatus, StopReason
from tests.frame_bytes import frame, lines

pytestmark = pytest.mark.django_db


def remarks(attempt: Attempt) -> list[tuple[int, str]]:
    """List (rank, text) of the portal's own lines."""
    found = read_lines(attempt.pk, stream="portal")
    return [(line.rank, line.text) for line in found]


def reported(rank: int, number: int) -> tuple[int, str]:
    return rank, (
        f"[portal] The end of rank {rank} in attempt 1 was not heard: "
        f"messages after its number {number} may be missing."
    )


def exited(seq: int, *, rank: int = 0) -> dict:
    return frame(seq, "worker", rank=rank, status="EXITED", exit_code=0)


def lost(seq: int, rank: int) -> dict:
    return frame(seq, "worker", about=rank, status="LOST", exit_code=None)


def end(seq: int, reason: str) -> dict:
    return frame(seq, "end", reason=reason, exit_code=None)


def test_the_log_of_a_lost_rank_says_after_which_message_lines_may_be_missing(attempt, post):
    post(*lines(1, 3), *lines(1, 2, rank=1), exited(4), lost(5, rank=1), end(6, "WORKER_LOST"))
    assert remarks(attempt) == [reported(1, 2)]


def test_a_rank_whose_runner_was_restarted_after_its_death_is_reported_as_well(attempt, post):
    post(*lines(1, 3), exited(4), *lines(1, 2, rank=1), end(5, "WORKER_LOST"))
    assert remarks(attempt) == [reported(1, 2)]


def test_a_first_rank_that_died_and_reported_the_end_after_its_restart_may_have_lost_lines(
    attempt, post
):
    post(*lines(1, 3), exited(1, rank=1), end(4, "WORKER_LOST"))
    text = "[portal] The end of rank 0 in attempt 1 was not heard: its last lines may be missing."
    assert remarks(attempt) == [(0, text)]


def test_a_lost_rank_is_reported_whatever_the_attempt_ended_of(attempt, post):
    post(exited(1), lost(2, rank=1), end(3, "USER_CODE"))
    assert remarks(attempt) == [reported(1, 0)]


def test_a_runner_stopped_from_outside_has_lost_the_ranks_that_never_spoke(attempt, post):
    post(*lines(1, 3), exited(4), end(5, "CANCELLED_BY_USER"))
    assert remarks(attempt) == [reported(1, 0)]


def test_a_runner_that_the_portal_has_stopped_reports_no_losses(attempt, post):
    Job.objects.filter(pk=attempt.job_id).update(status=JobStatus.STOPPING)
    post(*lines(1, 3), exited(4), end(5, "CANCELLED_BY_USER"))
    assert remarks(attempt) == []


def test_a_log_that_is_whole_says_nothing_of_losses(attempt, post):
    post(*lines(1, 3), exited(4), exited(1, rank=1), end(5, "COMPLETED"))
    assert remarks(attempt) == []


@pytest.mark.parametrize("reason", [StopReason.WORKER_LOST, StopReason.CANCELLED_BY_USER])
def test_an_attempt_that_the_portal_closes_reports_every_rank_that_never_ended(
    attempt, post, reason
):
    post(*lines(1, 3), *lines(1, 2, rank=1), exited(3, rank=1))
    assert close_attempt(attempt, reason, "gone")
    assert not close_attempt(attempt, reason, "gone")
    assert remarks(attempt) == [reported(0, 3)]


def test_an_attempt_without_any_report_reports_no_losses(attempt):
    close_attempt(attempt, StopReason.NO_CAPACITY, "no room")
    assert remarks(attempt) == []
