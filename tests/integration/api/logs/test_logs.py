"""A job's log over REST: pages by cursor, filters, the whole of it as text."""

from __future__ import annotations

import pytest

from jobs.models import Job
from tests.factories import make_member, make_token
from tests.frame_bytes import frame
from tests.integration.api.logged_job import ingest, make_logged_job, places


@pytest.fixture
def job(db: None) -> Job:
    return make_logged_job()


@pytest.fixture
def get(client, job):
    """GET something of the job's log as a member; `json` or the whole answer."""
    _, secret = make_token(make_member(job.project))
    base = f"/api/v1/projects/vision/jobs/{job.pk}/logs"

    def call(path: str = "", **query: object):
        headers = {"Authorization": f"Bearer {secret}"}
        return client.get(base + path, query, headers=headers)

    return call


ALL = ["1:1", "1:2", "1:3", "1:4", "1:5", "2:1", "2:2", "2:3"]


@pytest.mark.feature("P3.1")
def test_the_log_is_that_of_all_attempts_and_ranks_in_order(get) -> None:
    answer = get()
    assert places(answer) == ALL
    assert (answer.json()["next"], answer.json()["previous"]) == (None, None)
    assert answer.json()["results"][3] == {
        "line": 4,
        "attempt": 1,
        "rank": 1,
        "stream": "stderr",
        "at": "2023-11-14T22:13:20.010Z",
        "text": "r1 s1",
        "more": False,
    }


def test_pages_lead_forwards_and_backwards_over_everything(get) -> None:
    forwards: list[str] = []
    after = ""
    while after is not None:
        page = get(limit=3, after=after)
        forwards += places(page)
        after = page.json()["next"]
    assert forwards == ALL
    backwards: list[str] = []
    before: str | None = "end"
    while before is not None:
        page = get(limit=3, before=before)
        backwards = places(page) + backwards
        before = page.json()["previous"]
    assert backwards == ALL


def test_a_page_in_the_middle_says_how_to_go_on_in_both_directions(get) -> None:
    page = get(after="1:2", limit=2)
    assert places(page) == ["1:3", "1:4"]
    assert places(get(after=page.json()["next"])) == ALL[4:]
    assert places(get(before=page.json()["previous"])) == ALL[:2]
    page = get(before="2:1", limit=2)
    assert places(page) == ["1:4", "1:5"]
    assert places(get(after=page.json()["next"])) == ALL[5:]


def test_lines_of_one_attempt_rank_or_stream(get) -> None:
    assert places(get(attempt=2)) == ["2:1", "2:2", "2:3"]
    assert places(get(rank=1)) == ["1:4", "1:5"]
    assert places(get(stream="stderr", before="end", limit=1)) == ["1:5"]
    assert places(get(rank=0, attempt=1, after="1:1")) == ["1:2", "1:3"]
    assert places(get(attempt=9)) == []


def test_following_by_polling_finds_new_lines_behind_the_last_one_seen(get, job) -> None:
    assert places(get(after="2:3")) == []
    ingest(job.attempts.get(number=2), frame(4))
    assert places(get(after="2:3")) == ["2:4"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"after": "x"}, "invalid_cursor"),
        ({"before": "1-2"}, "invalid_cursor"),
        ({"limit": 0}, "invalid_request"),
        ({"limit": 100_000}, "invalid_request"),
        ({"stream": "stdin"}, "invalid_request"),
        ({"rank": -1}, "invalid_request"),
    ],
)
def test_an_unsupported_query_is_refused_by_its_name(get, query, code) -> None:
    answer = get(**query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
