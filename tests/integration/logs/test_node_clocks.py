"""Nodes whose clocks are wrong: their lines and stages get the times at which they happened."""

from __future__ import annotations

import time

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.logs.reading import read_lines
from jobs.models import Attempt, AttemptStage
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame

pytestmark = pytest.mark.django_db
SKEWS = pytest.mark.parametrize("skew_s", [-300, -31, -5, 0, 5, 31, 300])


@pytest.fixture
def attempt() -> Attempt:
    attempt = make_attempt(make_job(status="RUNNING"))
    Attempt.objects.update(created_at=attempt.created_at.replace(year=2020))
    return attempt


def deliver(attempt: Attempt, *frames: dict, sent_at: float | None) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(*frames), sent_at=sent_at)


@SKEWS
def test_a_line_gets_the_time_at_which_it_was_printed(attempt, skew_s):
    printed = time.time() - 60
    theirs = printed + skew_s
    deliver(attempt, frame(1, t=theirs), sent_at=time.time() + skew_s)
    (line,) = read_lines(attempt.pk)
    assert abs(line.at.timestamp() - printed) < (35 if abs(skew_s) <= 30 else 2)


@pytest.mark.parametrize("skew_s", [-300, 300])
def test_a_stage_lasts_as_long_as_it_did(attempt, skew_s):
    now = time.time()
    phases = [("begin", now - 40), ("end", now - 10)]
    frames = [
        frame(seq, kind="stage", stage="setup", phase=phase, ok=True, t=at + skew_s)
        for seq, (phase, at) in enumerate(phases, 1)
    ]
    deliver(attempt, *frames, sent_at=now + skew_s)
    stage = AttemptStage.objects.get(attempt=attempt, name="setup")
    assert stage.started_at.timestamp() == pytest.approx(now - 40, abs=2)
    assert stage.ended_at.timestamp() == pytest.approx(now - 10, abs=2)


@pytest.mark.parametrize("sent_at", [None, float("nan"), float("inf"), -1e18, 1e18, 0.0])
def test_whatever_a_sender_claims_the_time_can_be_shown(attempt, sent_at):
    deliver(attempt, frame(1, t=time.time()), sent_at=sent_at)
    assert read_lines(attempt.pk)[0].at.year < 3000
