"""A log of ten million lines over REST: each line has one number, by every way to read it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.logs import match_pool, searching
from jobs.models import Attempt
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.frame_bytes import frame
from tests.integration.api.logged_job import ingest, places
from tests.large_log import text_of, write_large_log

LINES = 9_999_999
NEEDLES = {1: "needle", 130: "a NEEDLE", 5_000_000: "needle", LINES: "one more needle"}


@pytest.fixture
def attempt(db: None, settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    settings.MEDIA_ROOT = tmp_path / "blobs"
    # How far a request comes must not depend on how busy this machine is.
    monkeypatch.setattr(searching, "MOST_S", 600.0)
    monkeypatch.setattr(match_pool, "WAIT_S", 60.0)
    job = make_job(make_project("vision"), status="RUNNING", num_nodes=2)
    attempt = make_attempt(job)
    write_large_log(attempt, LINES, NEEDLES)
    return attempt


@pytest.fixture
def get(client: Client, attempt: Attempt) -> Any:
    _, secret = make_token(make_member(attempt.job.project))
    path = f"/api/v1/projects/vision/jobs/{attempt.job_id}/logs"
    headers = {"Authorization": f"Bearer {secret}"}
    return lambda end="", **query: client.get(path + end, query, headers=headers)


def found(get: Any, words: str) -> list[str]:
    """Return the cursors of all matches, request by request."""
    hits: list[str] = []
    after = ""
    while after is not None:
        answer = get("/search", q=words, after=after)
        assert answer.status_code == 200, answer.json()
        hits += places(answer)
        after = answer.json()["next"]
    return hits


@pytest.mark.feature("P3.2")
def test_lines_of_ten_million_are_read_searched_and_filtered_by_their_numbers(get, attempt) -> None:
    around = get(after="1:119", limit=21).json()["results"]
    assert [row["line"] for row in around] == list(range(120, 141))
    assert [row["text"] for row in around] == [
        NEEDLES.get(number, text_of(number)) for number in range(120, 141)
    ]
    newest = get(before="end", limit=2).json()["results"]
    assert [(row["line"], row["text"]) for row in newest] == [
        (LINES - 1, text_of(LINES - 1)),
        (LINES, "one more needle"),
    ]
    assert found(get, "needle") == ["1:1", "1:130", "1:5000000", f"1:{LINES}"]
    assert places(get("/search", q="N[E]+DLE$", regex=1, case=1, limit=1)) == ["1:130"]
    near_the_end = {"q": "needle", "after": "1:9900000"}
    assert places(get("/search", **near_the_end, rank=1)) == [f"1:{LINES}"]
    assert places(get("/search", **near_the_end, rank=0)) == []
    one_rank = get(after="1:7000000", rank=0, limit=3).json()["results"]
    assert [row["line"] for row in one_rank] == [7_000_002, 7_000_004, 7_000_006]
    ingest(attempt, frame(1, text="written later"))
    assert places(get("/search", q="later", after="1:9900000")) == [f"1:{LINES + 1}"]
    assert get(after="1:119", limit=21).json()["results"] == around
