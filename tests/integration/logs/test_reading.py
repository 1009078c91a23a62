"""Reading by number: forwards, backwards, filtered, over tail and chunks alike."""

from __future__ import annotations

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.logs import parts, reading, sealing
from jobs.logs.reading import Wanted, latest, read_after, read_before, read_lines
from jobs.models import Attempt, LogBlock, LogHead
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame, lines

pytestmark = pytest.mark.django_db


def numbers(found) -> list[int]:
    return [line.number for line in found]


def test_an_empty_log_reads_as_nothing_in_every_direction(attempt) -> None:
    assert read_lines(attempt.pk) == []
    assert read_lines(attempt.pk, before=10) == []
    assert latest(attempt.pk, 10) == []
    assert read_after(attempt.pk, 0).is_cut is False


def test_lines_are_read_after_before_and_between(attempt, post) -> None:
    for seq in range(1, 21):
        post(frame(seq))
    assert numbers(read_lines(attempt.pk, after=3, limit=4)) == [4, 5, 6, 7]
    assert numbers(read_lines(attempt.pk, before=5, limit=2)) == [3, 4]
    assert numbers(read_lines(attempt.pk, before=3)) == [1, 2]
    assert numbers(read_lines(attempt.pk, after=3, before=6)) == [4, 5]
    assert numbers(read_lines(attempt.pk, after=20)) == []
    assert numbers(read_lines(attempt.pk, after=100)) == []
    assert numbers(latest(attempt.pk, 3)) == [18, 19, 20]
    assert numbers(read_lines(attempt.pk, before=100, limit=2)) == [19, 20]


def test_a_filter_finds_the_lines_of_one_rank_or_stream_in_both_directions(attempt, post) -> None:
    post(*lines(1, 5), *lines(1, 5, rank=1, stream="stderr"), *lines(6, 8, stream="setup"))
    assert numbers(read_lines(attempt.pk, rank=1)) == [6, 7, 8, 9, 10]
    assert numbers(read_lines(attempt.pk, stream="setup", limit=2)) == [11, 12]
    assert numbers(read_lines(attempt.pk, rank=0, before=12, limit=2)) == [5, 11]
    assert numbers(read_lines(attempt.pk, rank=0, stream="stderr")) == []


def test_a_filter_that_matches_nothing_says_how_far_it_looked(attempt, post, monkeypatch) -> None:
    monkeypatch.setattr(reading, "_MOST_SCANNED", 10)
    for first in range(1, 50, 5):
        post(*lines(first, first + 4))
    nothing = Wanted(rank=1)
    page = read_after(attempt.pk, 0, 100, nothing)
    assert (page.lines, page.last, page.is_cut) == ([], 10, True)
    looks = 0
    while page.is_cut:
        page = read_after(attempt.pk, page.last, 100, nothing)
        looks += 1
    assert (page.last, looks) == (50, 5)
    page = read_before(attempt.pk, None, 100, nothing)
    assert (page.lines, page.first, page.is_cut) == ([], 36, True)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_reading_is_the_same_before_and_after_any_sealing(db, monkeypatch, data) -> None:
    attempt = make_attempt(make_job(status="RUNNING", num_nodes=3))
    token = attempt_token(attempt.job_id, 1)
    next_seq = [1, 1, 1]
    batches = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=12)
    for rank, count in data.draw(batches):
        first, next_seq[rank] = next_seq[rank], next_seq[rank] + count
        stream = "stderr" if count % 2 else "stdout"
        ingest_frames(
            attempt.pk, token, body(*lines(first, first + count - 1, rank=rank, stream=stream))
        )
        if data.draw(st.booleans()):
            monkeypatch.setattr(sealing, "CHUNK_BYTES", data.draw(st.integers(1, 400)))
            sealing.seal(attempt.pk)
    queries = [
        {"after": data.draw(st.integers(0, 60)), "limit": data.draw(st.integers(1, 30))},
        {"before": data.draw(st.integers(1, 60)), "limit": data.draw(st.integers(1, 30))},
        {"rank": data.draw(st.integers(0, 2))},
        {"stream": "stderr", "before": data.draw(st.integers(1, 60)), "limit": 5},
        {},
    ]
    before = [read_lines(attempt.pk, **query) for query in queries]
    monkeypatch.setattr(sealing, "CHUNK_BYTES", 1)
    sealing.seal(attempt.pk)
    assert not LogBlock.objects.filter(attempt=attempt).exists()
    assert LogHead.objects.get(pk=attempt.pk).tail_bytes == 0
    assert [read_lines(attempt.pk, **query) for query in queries] == before
    assert numbers(before[-1]) == list(range(1, sum(next_seq) - 2))


def test_long_lines_are_given_out_a_bounded_number_at_a_time(attempt, post) -> None:
    for seq in range(1, 100):
        post(frame(seq, text="x" * 30_000))
    page = read_after(attempt.pk, 0, 5000)
    assert page.is_cut
    assert sum(len(line.text) for line in page.lines) < 2 * 1024 * 1024
    assert numbers(read_after(attempt.pk, page.last, 1).lines) == [page.last + 1]
    page = read_before(attempt.pk, None, 5000)
    assert page.is_cut
    assert (page.lines[0].number, page.last) == (page.first, 99)


@pytest.mark.parametrize("direction", ["forwards", "backwards"])
def test_a_log_that_is_sealed_while_it_is_read_shows_each_line_once(
    attempt, post, monkeypatch, direction
) -> None:
    for seq in range(1, 13):
        post(frame(seq))
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=timezone.now(), stop_reason="COMPLETED")
    fetch = parts._fetch

    def fetch_and_seal(*arguments):
        fetched = fetch(*arguments)
        sealing.seal(attempt.pk)
        return fetched

    monkeypatch.setattr(parts, "_fetch", fetch_and_seal)
    page = read_after(attempt.pk, 0) if direction == "forwards" else read_before(attempt.pk, None)
    assert numbers(page.lines) == list(range(1, 13))
    assert (page.first, page.last) == (1, 12)
