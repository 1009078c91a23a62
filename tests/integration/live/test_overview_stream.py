"""The streams behind overviews: the parts that changed, and to members only."""

from __future__ import annotations

import json

import httpx

from jobs.lifecycle import move
from jobs.models import Membership
from jobs.statuses import JobStatus, Role, StopReason
from monarch_client.rest.server_sent import read_events
from tests.factories import make_job, make_member, make_project, make_user
from tests.integration.live.conftest import next_of
from tests.integration.live.test_table_stream import cookies_of


def test_only_parts_that_changed_travel_to_the_page_of_a_project_and_of_all(web, job) -> None:
    user = make_member(job.project)
    other = make_job(make_project(), status="RUNNING", name="elsewhere")
    Membership.objects.create(project=other.project, user=user, role=Role.VIEWER)
    cookies = cookies_of(user)
    with (
        httpx.stream(
            "GET", f"{web}/{job.project.slug}/overview/stream", cookies=cookies, timeout=20
        ) as of_project,
        httpx.stream("GET", f"{web}/settings/overview/stream", cookies=cookies, timeout=20) as all_,
    ):
        mine, both = read_events(of_project.iter_bytes()), read_events(all_.iter_bytes())
        assert next_of(mine, "changed").data == next_of(both, "changed").data
        move(other, JobStatus.FAILED, reason=StopReason.OOM)
        parts = json.loads(next_of(both, "parts").data)
        assert "Out of memory" in parts and 'id="overview-failures"' in parts
        move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)
        parts = json.loads(next_of(mine, "parts").data)
        assert 'id="overview-running"' in parts and "No job runs." in parts
        assert 'id="overview-money"' not in parts and "elsewhere" not in parts


def test_no_client_is_sent_away_for_good_and_a_stranger_finds_nothing(web, job) -> None:
    url = f"{web}/{job.project.slug}/overview/stream"
    assert httpx.get(url).status_code == 204
    assert httpx.get(url, cookies=cookies_of(make_user())).status_code == 404
    assert httpx.get(f"{web}/settings/overview/stream").status_code == 204
