"""The stream behind the job table: it reports that a row changed, and to members only."""

from __future__ import annotations

import json
from contextlib import ExitStack

import httpx
import pytest
from django.conf import settings
from django.test import Client

from jobs.lifecycle import move
from jobs.models import User
from jobs.statuses import JobStatus, StopReason
from jobs.web.jobs import table_stream
from monarch_client.rest.server_sent import read_events
from tests.factories import make_job, make_member, make_user
from tests.integration.live.conftest import next_of


def cookies_of(user: User) -> dict[str, str]:
    browser = Client()
    browser.force_login(user)
    return {settings.SESSION_COOKIE_NAME: browser.cookies[settings.SESSION_COOKIE_NAME].value}


@pytest.fixture
def url(web: str, job) -> str:
    return f"{web}/{job.project.slug}/jobs/stream"


def test_a_change_of_any_job_of_the_project_is_reported_and_of_no_other(url, job) -> None:
    cookies = cookies_of(make_member(job.project))
    other = make_job(status="RUNNING")
    with httpx.stream("GET", url, cookies=cookies, timeout=20) as response:
        events = read_events(response.iter_bytes())
        assert next_of(events, "changed").data
        move(other, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
        move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
        rows = json.loads(next_of(events, "rows").data)
        assert rows["order"] == [f"job-{job.pk}"]
        assert "Succeeded" in rows["rows"]
        # The counts by status.
        assert 'id="job-chips"' in rows["parts"]


def test_only_rows_that_changed_travel_and_the_page_requests_all_where_rows_are_not_enough(
    url, job
) -> None:
    other = make_job(job.project, status="RUNNING")
    cookies = cookies_of(make_member(job.project))
    with (
        httpx.stream("GET", url, cookies=cookies, timeout=20) as response,
        httpx.stream("GET", url + "?status=SUCCEEDED", cookies=cookies, timeout=20) as none,
    ):
        events, empty = read_events(response.iter_bytes()), read_events(none.iter_bytes())
        assert next_of(events, "changed").data == next_of(empty, "changed").data
        move(other, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
        rows = json.loads(next_of(events, "rows").data)
        assert rows["order"] == [f"job-{other.pk}", f"job-{job.pk}"]
        assert f'id="job-{other.pk}"' in rows["rows"]
        assert f'id="job-{job.pk}"' not in rows["rows"]
        # Its table gets a first row: there is no table yet that could take it.
        assert next_of(empty, "changed").data


def test_equal_tables_of_many_readers_are_rendered_once(url, job, monkeypatch) -> None:
    rendered: list[str] = []
    render = table_stream._rendered
    monkeypatch.setattr(
        table_stream, "_rendered", lambda context: rendered.append("table") or render(context)
    )
    readers = [cookies_of(make_member(job.project)) for _ in range(4)]
    with ExitStack() as open_streams:
        streams = [
            read_events(
                open_streams.enter_context(
                    httpx.stream("GET", url, cookies=cookies, timeout=20)
                ).iter_bytes()
            )
            for cookies in readers
        ]
        for events in streams:
            next_of(events, "changed")
        before = len(rendered)
        move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
        assert len({next_of(events, "rows").data for events in streams}) == 1
        assert len(rendered) - before <= 2


def test_no_client_is_sent_away_for_good_and_a_stranger_finds_nothing(url) -> None:
    assert httpx.get(url).status_code == 204
    assert httpx.get(url, cookies=cookies_of(make_user())).status_code == 404
