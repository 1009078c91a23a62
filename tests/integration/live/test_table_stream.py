"""The stream behind the job table: it reports that a row changed, and to members only."""

from __future__ import annotations

import httpx
import pytest
from django.conf import settings
from django.test import Client

from jobs.lifecycle import move
from jobs.models import User
from jobs.statuses import JobStatus, StopReason
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
        assert next(events).event == "changed"


def test_no_client_is_sent_away_for_good_and_a_stranger_finds_nothing(url) -> None:
    assert httpx.get(url).status_code == 204
    assert httpx.get(url, cookies=cookies_of(make_user())).status_code == 404
