"""Lines: each stored once, in order of arrival, without holes; and permission to send them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.errors import (
    AttemptClosedError,
    InvalidFrameError,
    NotFoundError,
    PermissionDeniedError,
)
from jobs.logs.reading import read_lines
from jobs.models import Attempt, LogBlock, LogHead
from jobs.statuses import ClusterStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import T0, body, frame, lines

pytestmark = pytest.mark.django_db


def texts(attempt: Attempt) -> list[str]:
    stored = read_lines(attempt.pk, limit=5000)
    assert [line.number for line in stored] == list(range(1, len(stored) + 1))
    return [line.text for line in stored]


def test_lines_are_numbered_as_they_arrive_whatever_their_rank(attempt, post) -> None:
    assert post(*lines(1, 2), *lines(1, 1, rank=1), frame(3)) == {"0": 3, "1": 1}
    assert post(frame(2, rank=1, text="late")) == {"0": 3, "1": 2}
    assert texts(attempt) == ["r0 s1", "r0 s2", "r1 s1", "r0 s3", "late"]


def test_frames_posted_again_are_acknowledged_and_stored_once(attempt, post) -> None:
    for _ in range(3):
        assert post(*lines(1, 5)) == {"0": 5}
    assert post(*lines(3, 8)) == {"0": 8}
    assert texts(attempt) == [f"r0 s{seq}" for seq in range(1, 9)]


def test_a_gap_is_reported_in_the_log_with_the_numbers_that_are_missing(attempt, post) -> None:
    post(frame(1))
    assert post(frame(5)) == {"0": 5}
    first, gap, last = read_lines(attempt.pk)
    assert (first.text, last.text) == ("r0 s1", "r0 s5")
    assert (gap.stream, gap.rank) == ("portal", 0)
    assert "3 messages of rank 0" in gap.text
    assert "2 to 4" in gap.text


def test_reports_take_a_sequence_number_but_no_line(attempt, post) -> None:
    stage = frame(2, "stage", stage="setup", phase="begin")
    assert post(frame(1), stage, frame(3)) == {"0": 3}
    assert texts(attempt) == ["r0 s1", "r0 s3"]


def test_one_bad_frame_refuses_the_whole_body_and_stores_nothing(attempt, post) -> None:
    with pytest.raises(InvalidFrameError, match="Frame 3"):
        post(frame(1), frame(2), {**frame(3), "kind": "shout"})
    assert texts(attempt) == []
    assert post() == {}


def test_no_frames_are_a_sign_of_life_and_answer_what_is_stored(attempt, post) -> None:
    post(*lines(1, 3))
    Attempt.objects.filter(pk=attempt.pk).update(last_seen_at=None, contacted_at=None)
    assert post() == {"0": 3}
    attempt.refresh_from_db()
    assert attempt.last_seen_at is not None
    assert attempt.contacted_at is not None


def test_the_first_word_of_a_runner_has_its_machines_looked_at_once(
    attempt, post, monkeypatch, django_capture_on_commit_callbacks
) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(last_seen_at=None, contacted_at=None)
    requested: list[tuple[str, int]] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args: requested.append(args))
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            post(frame(1))
    assert requested == [("provisioning", attempt.job_id)]


def test_last_seen_is_not_written_for_every_batch(attempt, post) -> None:
    post(frame(1))
    attempt.refresh_from_db()
    first = attempt.last_seen_at
    post(frame(2))
    attempt.refresh_from_db()
    assert attempt.last_seen_at == first


def test_a_request_makes_few_rows_however_many_lines_it_has(attempt, post) -> None:
    post(*lines(1, 5000))
    blocks = LogBlock.objects.filter(attempt=attempt)
    assert blocks.count() <= 4
    assert all(block.raw_bytes <= 64 * 1024 for block in blocks)
    assert sum(block.line_count for block in blocks) == 5000


def test_hostile_bytes_are_stored_and_read_back(attempt, post) -> None:
    raw = body(frame(1, text="nul \0")).replace(b"nul", b"half \\ud83d nul")
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, raw)
    post(
        frame(2, text="\r 50%\r100%"),
        frame(3, text="<script>alert(1)</script>\x1b[31mred"),
        frame(4, text="two\nlines"),
        frame(5, "worker", status="LOST", detail="nul \0 here"),
    )
    assert texts(attempt) == [
        "half \N{REPLACEMENT CHARACTER} nul \0",
        "\r 50%\r100%",
        "<script>alert(1)</script>\x1b[31mred",
        "two\N{SYMBOL FOR NEWLINE}lines",
    ]
    assert attempt.workers.get().detail == "nul \N{REPLACEMENT CHARACTER} here"


def test_pieces_of_a_long_line_keep_that_they_go_on(attempt, post) -> None:
    post(frame(1, text="begin ", more=True), frame(2, text="end"))
    assert [line.more for line in read_lines(attempt.pk)] == [True, False]


def test_an_unknown_attempt_and_a_wrong_token_are_refused(attempt) -> None:
    with pytest.raises(NotFoundError):
        ingest_frames(attempt.pk + 1, attempt_token(attempt.job_id, 1), b"")
    other = make_attempt(make_job(status="RUNNING"))
    with pytest.raises(PermissionDeniedError):
        ingest_frames(attempt.pk, attempt_token(other.job_id, 1), body(frame(1)))
    assert texts(attempt) == []


def test_a_rank_the_job_does_not_have_is_refused(post) -> None:
    with pytest.raises(InvalidFrameError, match="rank"):
        post(frame(1, rank=2))


def test_an_ended_attempt_takes_its_late_lines_until_its_cluster_is_gone(attempt, post) -> None:
    post(frame(1), frame(2, "end", reason="COMPLETED", exit_code=0))
    assert post(frame(2, "end", reason="COMPLETED", exit_code=0), frame(1, rank=1)) == {
        "0": 2,
        "1": 1,
    }
    attempt.cluster.status = ClusterStatus.GONE
    attempt.cluster.save()
    with pytest.raises(AttemptClosedError):
        post(frame(2, rank=1))
    assert texts(attempt) == ["r0 s1", "r1 s1"]


def test_the_first_frame_makes_the_head_of_a_log_that_has_none(attempt, post) -> None:
    LogHead.objects.filter(pk=attempt.pk).delete()
    assert post(frame(1)) == {"0": 1}
    assert texts(attempt) == ["r0 s1"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), max_size=8))
def test_any_repeated_and_overlapping_batches_store_each_frame_once_and_in_order(
    db, batches: list[tuple[int, int]]
) -> None:
    """Send batches as a runner does, from the last stored number it knows of, maybe an old one."""
    attempt = make_attempt(make_job(status="RUNNING"))
    token = attempt_token(attempt.job_id, 1)
    acked = 0
    for back, count in batches:
        first = max(1, acked + 1 - back)
        answer = ingest_frames(attempt.pk, token, body(*lines(first, first + count - 1)))
        acked = max(acked, first + count - 1)
        assert answer == {"0": acked}
    assert texts(attempt) == [f"r0 s{seq}" for seq in range(1, acked + 1)]


def test_a_job_that_prints_its_environment_does_not_give_its_token_away(attempt, post) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    post(frame(1, text=f"MPORTAL_TOKEN={token}"))
    assert texts(attempt) == ["MPORTAL_TOKEN=mpa_***"]


def test_the_time_of_each_ranks_last_line_is_stored_and_the_portals_own_lines_do_not_count(
    attempt, post
) -> None:
    post(*lines(1, 200), *lines(1, 300, rank=1))
    post(frame(900, rank=1, stream="portal"), frame(901, rank=1, stream="setup"))
    last = LogHead.objects.get(attempt=attempt).last_lines
    assert last == {"0": int(T0 + 2), "1": int(T0 + 3)}
