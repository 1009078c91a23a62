"""Jobs of a portal: lists and logs of several pages, and removal."""

from __future__ import annotations

import httpx
import pytest

from monarch_client.context import PortalClusterContext
from monarch_client.context.cluster import portal as module
from monarch_client.errors import ConflictError
from tests.unit.rest.fake_portal import (
    FakePortal,
    ended_job,
    job_json,
    line_json,
    ok,
    page,
    problem,
)

pytestmark = pytest.mark.feature("S4.9")

JOBS = "/projects/rl/jobs"


@pytest.fixture
def portal():
    return FakePortal()


@pytest.fixture
def cluster(portal):
    return PortalClusterContext(portal.client(), "rl")


def test_all_pages_of_the_users_jobs_are_listed(portal, cluster):
    newest = page([job_json(id=3), job_json(id=2)], next="older")
    portal.on(f"GET {JOBS}", newest, page([job_json(id=1)]))
    assert [each.id for each in cluster.list_jobs()] == ["1", "2", "3"]
    queries = [dict(request.url.params) for request in portal.seen(f"GET {JOBS}")]
    assert [query.get("cursor") for query in queries] == [None, "older"]
    assert {query["user"] for query in queries} == {"me"}


def test_a_log_has_all_pages_of_the_last_attempt_and_joins_long_lines(portal, cluster, monkeypatch):
    monkeypatch.setattr(module, "_PAGE", 2)
    portal.on(f"GET {JOBS}/42", ok(ended_job(attempt_count=3)))
    first = [line_json(1, "long ", more=True), line_json(2, "other", rank=1)]
    portal.on(
        f"GET {JOBS}/42/logs",
        page(first, next="3:2"),
        page([line_json(3, "line")]),
        page([]),
    )
    assert cluster.get_job_logs("42") == ("other\nlong line\n", "")
    queries = [request.url.params for request in portal.seen(f"GET {JOBS}/42/logs")]
    assert [query.get("after") for query in queries] == [None, "3:2", None]
    assert {query["attempt"] for query in queries} == {"3"}


def test_an_ended_job_is_removed_once_its_machines_are_terminated(portal, cluster):
    portal.on(f"GET {JOBS}/42", ok(ended_job()))
    portal.on(f"DELETE {JOBS}/42", problem(409, "conflict"), httpx.Response(204))
    cluster.delete_job("42")
    assert len(portal.seen(f"DELETE {JOBS}/42")) == 2
    portal.on(f"DELETE {JOBS}/42", problem(409, "conflict", "Being terminated."))
    with pytest.raises(ConflictError, match="Being terminated"):
        cluster.delete_job("42")


def test_a_job_that_ends_while_it_is_stopped_is_left_as_it_ended(portal, cluster):
    portal.on(f"GET {JOBS}/42", ok(job_json(status="RUNNING")))
    portal.on(f"POST {JOBS}/42/actions/cancel", problem(409, "job_final"))
    cluster.delete_job("42")
    assert not portal.seen(f"DELETE {JOBS}/42")
