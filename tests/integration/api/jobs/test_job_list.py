"""GET /projects/{slug}/jobs: filters and pages."""

from __future__ import annotations

import pytest

from jobs.statuses import JobStatus
from tests.factories import make_job, make_project
from tests.integration.api.conftest import assert_problem

PATH = "/projects/rl/jobs"


def ids(response):
    return [row["id"] for row in response.json()["results"]]


def test_jobs_come_newest_first_and_only_those_of_the_project(viewer, project):
    jobs = [make_job(project).pk for _ in range(3)]
    make_job(make_project("elsewhere"))
    assert ids(viewer.get(PATH)) == jobs[::-1]


@pytest.mark.feature("P7.2")
def test_pages_hang_together_in_both_directions(viewer, project):
    jobs = [make_job(project).pk for _ in range(5)][::-1]
    first = viewer.get(PATH, {"limit": 2}).json()
    assert first["previous"] is None
    second = viewer.get(PATH, {"limit": 2, "cursor": first["next"]}).json()
    third = viewer.get(PATH, {"limit": 2, "cursor": second["next"]}).json()
    pages = [[row["id"] for row in page["results"]] for page in (first, second, third)]
    assert pages == [jobs[:2], jobs[2:4], jobs[4:]]
    assert third["next"] is None
    back = viewer.get(PATH, {"limit": 2, "cursor": third["previous"]}).json()
    assert [row["id"] for row in back["results"]] == jobs[2:4]


def test_a_job_that_is_added_moves_no_page(viewer, project):
    jobs = [make_job(project).pk for _ in range(3)][::-1]
    first = viewer.get(PATH, {"limit": 2}).json()
    make_job(project)
    assert ids(viewer.get(PATH, {"limit": 2, "cursor": first["next"]})) == jobs[2:]


def test_filters_narrow_the_list(viewer, member, project):
    running = make_job(project, status=JobStatus.RUNNING, name="train")
    queued = make_job(project, submitted_by=viewer.user)
    done = make_job(project, status=JobStatus.SUCCEEDED, kind="monarch")
    expected = {
        "status=RUNNING": [running.pk],
        "status=RUNNING,QUEUED": [queued.pk, running.pk],
        "user=me": [queued.pk],
        f"user={viewer.user.username}": [queued.pk],
        "user=nobody": [],
        "kind=monarch": [done.pk],
        "name=train": [running.pk],
        "q=rai": [running.pk],
        f"q={done.pk}": [done.pk],
        "status=&user=&kind=&q=&name=&cursor=": [done.pk, queued.pk, running.pk],
    }
    found = {query: ids(viewer.get(f"{PATH}?{query}")) for query in expected}
    assert found == expected


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("status=DANCING", "invalid_request"),
        ("kind=fancy", "invalid_request"),
        ("limit=0", "invalid_request"),
        ("limit=201", "invalid_request"),
        ("limit=many", "invalid_request"),
        ("q=%00", "invalid_request"),
        ("user=%00", "invalid_request"),
        ("name=%00", "invalid_request"),
        ("cursor=%00", "invalid_request"),
        ("cursor=nonsense", "invalid_cursor"),
        ("cursor=YWZ0ZXI6eA==", "invalid_cursor"),
        ("cursor=%C3%BC", "invalid_cursor"),
    ],
)
def test_a_filter_that_makes_no_sense_is_a_problem(viewer, query, code):
    assert_problem(viewer.get(f"{PATH}?{query}"), 400, code)
