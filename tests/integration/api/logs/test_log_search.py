"""Searching a job's log over REST: on the server, all of it, a bounded stretch at a time."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.logs import match_pool, sealing, searching
from jobs.logs.match_pool import POOL, MatchProcess
from jobs.logs.matching import Question
from jobs.models import Job
from monarch_client.runner.base.lines import MAX_PIECE_BYTES, LineSplitter
from tests.factories import make_member, make_token
from tests.frame_bytes import frame
from tests.integration.api.logged_job import ingest, make_logged_job, places


@pytest.fixture(autouse=True)
def blob_store(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "blobs"
    # How far a request comes must not depend on how busy this machine is.
    monkeypatch.setattr(searching, "MOST_S", 600.0)
    monkeypatch.setattr(match_pool, "WAIT_S", 60.0)


@pytest.fixture
def job(db: None) -> Job:
    return make_logged_job()


@pytest.fixture
def search(client, job):
    """Search the job's log as a member."""
    _, secret = make_token(make_member(job.project))

    def call(q: str = "", **query: object):
        return client.get(
            f"/api/v1/projects/vision/jobs/{job.pk}/logs/search",
            {"q": q, **query},
            headers={"Authorization": f"Bearer {secret}"},
        )

    return call


def all_places(search, *args, **query) -> list[str]:
    """List what all pages together hold."""
    found, after = [], ""
    while after is not None:
        answer = search(*args, after=after, **query)
        assert answer.status_code == 200
        found += places(answer)
        after = answer.json()["next"]
    return found


def test_hits_are_lines_with_their_numbers_and_where_they_match(search) -> None:
    answer = search("S1")
    assert places(answer) == ["1:1", "1:4", "2:1"]
    assert answer.json()["results"][1] == {
        "line": 4,
        "attempt": 1,
        "rank": 1,
        "stream": "stderr",
        "at": "2023-11-14T22:13:20.010Z",
        "text": "r1 s1",
        "more": False,
        "spans": [[3, 5]],
    }
    rest = {key: value for key, value in answer.json().items() if key != "results"}
    assert rest.pop("scanned_bytes") > 0
    assert rest == {"next": None, "previous": None, "last": "2:3", "removed": ""}


@pytest.mark.feature("P3.2")
def test_a_search_is_narrowed_by_case_attempt_rank_stream_and_time(search) -> None:
    assert places(search("S1", case=1)) == []
    assert places(search("s1", attempt=2)) == ["2:1"]
    assert places(search("s1", rank=1)) == ["1:4"]
    assert places(search("s", stream="stderr")) == ["1:4", "1:5"]
    since = "2023-11-14T22:13:20.020Z"
    assert places(search("s", since=since, attempt=1)) == ["1:2", "1:3", "1:5"]
    assert places(search("s", until=since, attempt=1)) == ["1:1", "1:4"]
    assert places(search(since=since, rank=1)) == ["1:5"]


def test_a_search_is_narrowed_by_level(search, job) -> None:
    attempt = job.attempts.get(number=2)
    for seq, text in enumerate(("W: a warning", "ValueError: no", "all is well"), 4):
        ingest(attempt, frame(seq, text=text))
    assert places(search(level="error")) == ["2:5"]
    assert places(search(level="warning")) == ["2:4", "2:5"]
    assert places(search("a", level="error")) == ["2:5"]
    assert places(search("w", level="error")) == []
    assert search(level="grave").json()["errors"][0]["path"] == "level"


@pytest.mark.feature("P3.2")
def test_a_regular_expression_is_one_only_when_requested(search) -> None:
    assert places(search("^r[12] .2$", regex=1)) == ["1:5"]
    assert places(search("^r[12] .2$")) == []


@pytest.mark.feature("P3.2")
def test_pages_of_hits_lead_on_to_the_end(search) -> None:
    assert all_places(search, "s", limit=2) == [
        "1:1", "1:2", "1:3", "1:4", "1:5", "2:1", "2:2", "2:3",
    ]  # fmt: skip
    assert all_places(search, "s3", limit=1) == ["1:3", "2:3"]


def test_what_is_written_later_is_found_from_where_the_last_search_ended(search, job) -> None:
    last = search("fresh").json()["last"]
    ingest(job.attempts.get(number=2), frame(4, text="a fresh line"))
    assert places(search("fresh", after=last)) == ["2:4"]


def test_a_request_looks_at_a_bounded_stretch_and_says_how_far(search, job, monkeypatch) -> None:
    attempt = job.attempts.get(number=2)
    for seq in range(4, 40):
        ingest(attempt, frame(seq, text="needle" if seq == 39 else "hay"))
    monkeypatch.setattr(searching, "MOST_BYTES", 1)
    answer = search("needle")
    assert (places(answer), answer.json()["next"]) == ([], "1:5")
    assert all_places(search, "needle") == ["2:39"]
    monkeypatch.setattr(searching, "MOST_S", 0)
    assert all_places(search, "needle") == ["2:39"]


@pytest.mark.feature("P3.2")
def test_the_same_is_found_in_the_tail_and_in_sealed_chunks(search, job, monkeypatch) -> None:
    attempt = job.attempts.get(number=2)
    for seq in range(4, 60):
        ingest(attempt, frame(seq, text=f"needle {seq}" if seq % 7 == 0 else "hay"))
    before = all_places(search, "needle", limit=3)
    assert before == [f"2:{seq}" for seq in range(7, 60, 7)]
    monkeypatch.setattr(sealing, "CHUNK_BYTES", 500)
    assert sealing.seal(attempt.pk) > 1
    ingest(attempt, frame(60, text="needle 60"))
    assert all_places(search, "needle", limit=3) == [*before, "2:60"]


def test_hostile_lines_come_as_text_and_hostile_words_find_only_themselves(search, job) -> None:
    attempt = job.attempts.get(number=2)
    texts = [
        "<img src=x onerror=alert(1)>",
        "\0nul",
        "\ud800half",
        "' OR 1=1 --",
        "\x1b[2J\x1b[31mred",
    ]
    ingest(attempt, *[frame(4 + i, text=text) for i, text in enumerate(texts)])
    assert search("<img").json()["results"][0]["text"] == texts[0]
    assert places(search("' or 1=1 --")) == ["2:7"]
    assert search("RED").json()["results"][0]["spans"] == [[0, 3]]
    assert places(search("nul")) == ["2:5"]
    assert places(search("half")) == ["2:6"]
    assert places(search("%")) == []


@pytest.mark.parametrize(
    ("pattern", "position"), [("(abc", 0), ("a**", 1), ("ab[z-a]", 3), ("é(?<=x)", 1)]
)
def test_a_bad_pattern_is_a_problem_with_its_place(search, pattern, position) -> None:
    answer = search(pattern, regex=1)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, "invalid_pattern")
    assert problem["errors"][0]["path"] == "q"
    assert problem["errors"][0]["position"] == position
    assert f"at character {position + 1}" in problem["detail"]
    assert places(search("s3", regex=1)) == ["1:3", "2:3"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"q": "a\0b"}, "invalid_request"),
        ({"q": "a" * 1001}, "invalid_request"),
        ({"q": "a", "limit": 0}, "invalid_request"),
        ({"q": "a", "since": "yesterday"}, "invalid_request"),
        ({"q": "a", "after": "x"}, "invalid_cursor"),
        ({"q": "a", "stream": "stdin"}, "invalid_request"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_its_name(search, query, code) -> None:
    answer = search(**query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGPROF, (400, "search_too_slow")), (signal.SIGKILL, (503, "portal_busy"))],
)
def test_a_search_whose_process_ends_learns_so_and_the_next_one_gets_another(
    search, monkeypatch, number, expected
) -> None:
    with POOL.lend(Question("s1")) as process:
        broken = process
    broken._process.kill()
    broken._process.wait()
    assert places(search("s1")) == ["1:1", "1:4", "2:1"]

    def ended(self, *_):
        self._process.send_signal(number)
        self._process.wait()
        return self._answer(b"{}")

    with monkeypatch.context() as patched:
        patched.setattr(MatchProcess, "hits", ended)
        answer = search("s1")
    assert (answer.status_code, answer.json()["code"]) == expected
    assert places(search("s1")) == ["1:1", "1:4", "2:1"]


def test_a_bad_pattern_costs_no_process_nor_does_one_that_is_sent_to_a_dead_one(search) -> None:
    POOL.close()
    assert search("(", regex="true").status_code == 400
    (process,) = POOL._idle
    process._process.kill()
    process._process.wait()
    assert search("(", regex="true").status_code == 400
    assert places(search("s1")) == ["1:1", "1:4", "2:1"]


def test_the_process_of_searches_ends_with_the_connection_to_its_portal() -> None:
    process = MatchProcess()
    process._connection.close()
    assert process._process.wait(60) == 0


def test_more_searches_than_processes_are_refused_with_a_time_to_retry(
    search, settings, monkeypatch
) -> None:
    settings.MPORTAL_SEARCHES = 1
    monkeypatch.setattr(match_pool, "WAIT_S", 0.01)
    with POOL.lend(Question("x")):
        answer = search("s1")
    assert (answer.status_code, answer.json()["code"]) == (503, "portal_busy")
    assert answer.headers["Retry-After"]
    assert places(search("s1")) == ["1:1", "1:4", "2:1"]


def test_the_process_of_a_search_knows_no_secret(search) -> None:
    with POOL.lend(Question("x")) as process:
        assert Path(f"/proc/{process._process.pid}/environ").read_bytes() == b""


def test_since_takes_a_time_with_any_offset(search) -> None:
    past = (timezone.now() - timedelta(days=1)).isoformat()
    assert places(search("s1", since=past)) == []
    assert places(search("s1", since="2023-11-14T23:13:20+01:00")) == ["1:1", "1:4", "2:1"]


def test_a_line_of_megabytes_is_searched_across_its_pieces_wherever_a_request_begins(
    search, job, monkeypatch
) -> None:
    attempt = job.attempts.get(number=2)
    # Each border of the first twenty has one in its middle.
    gap = MAX_PIECE_BYTES - len("needle")
    line = "x" * (gap + 3) + ("needle" + "x" * gap) * 20 + "x" * 1_500_000
    for seq, piece in enumerate(LineSplitter().feed(f"{line}\n".encode()), 4):
        ingest(attempt, frame(seq, text=piece.text, more=piece.more))
        ingest(attempt, frame(seq - 3, rank=1))
    expected = [f"2:{line}" for line in range(6, 45, 2)]
    assert all_places(search, "needle") == expected
    assert all_places(search, "needle", limit=1) == expected
    monkeypatch.setattr(sealing, "CHUNK_BYTES", 100_000)
    assert sealing.seal(attempt.pk) > 3
    monkeypatch.setattr(searching, "MOST_BYTES", 1)
    assert all_places(search, "ne{2}dle$|e{2}d", regex=1) == expected
    (row,) = search("needle", after="2:9", limit=1).json()["results"]
    assert (row["line"], row["spans"]) == (10, [[0, 3]])
