"""Clusters over REST: the list with owner, age and cost; and termination."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import Cluster, Job, JobEvent, StrayCluster, Worker
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job, make_project
from tests.integration.api.conftest import assert_problem, caller_for


@pytest.fixture
def job(project) -> Job:
    """Create a job that has ended, with a cluster that waits for the next."""
    job = make_job(project, status=JobStatus.SUCCEEDED)
    attempt = make_attempt(job, ended_at=timezone.now(), usd=Decimal("1.5"))
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        name="mpx-warm",
        status=ClusterStatus.UP,
        is_reusable=True,
        idle_since=timezone.now(),
        infra="slurm/main",
        resources="2x(H100:8)",
        usd_per_hour=Decimal("2.5"),
        usd=Decimal("1.75"),
    )
    return job


@pytest.fixture
def strays() -> None:
    seen = {"status": "UP", "infra": "aws", "num_nodes": 2, "usd_per_hour": "4", "owner": "eve"}
    seen["launched_at"] = "2026-03-01T12:00:00+00:00"
    StrayCluster.objects.create(name="mpx-lost", backend_name="fake", kind="own", seen=seen)
    StrayCluster.objects.create(name="theirs", backend_name="fake", kind="foreign", seen=seen)


def rows_of(response: Any) -> dict[str, dict[str, Any]]:
    assert response.status_code == 200, response.content
    return {row["name"]: row for row in response.json()["results"]}


def test_it_says_what_exists_whose_since_when_and_at_what_cost(viewer, job):
    row = rows_of(viewer.get("/projects/rl/clusters"))["mpx-warm"]
    assert (row["kind"], row["project"], row["job"], row["job_name"]) == (
        "row",
        "rl",
        job.pk,
        "hello",
    )
    assert (row["status"], row["is_busy"], row["infra"]) == ("UP", False, "slurm/main")
    assert row["since"] and row["idle_since"]
    assert (row["usd_per_hour"], row["usd"], row["idle_usd"]) == (
        "2.500000",
        "1.750000",
        "0.250000",
    )
    assert row["can_down"] is False


def test_what_is_gone_is_not_listed(viewer, job):
    Cluster.objects.update(status=ClusterStatus.GONE)
    assert rows_of(viewer.get("/projects/rl/clusters")) == {}


def test_the_list_of_all_shows_ones_own_projects_and_no_strays(viewer, job, strays):
    other = make_attempt(make_job(make_project("other"))).cluster
    assert other is not None
    assert set(rows_of(viewer.get("/clusters"))) == {"mpx-warm"}


def test_an_administrator_sees_all_there_is(root, job, strays):
    rows = rows_of(root.get("/clusters"))
    assert list(rows) == ["mpx-warm", "mpx-lost", "theirs"]
    assert (rows["mpx-lost"]["kind"], rows["theirs"]["kind"]) == ("own", "foreign")
    assert (rows["mpx-lost"]["can_down"], rows["theirs"]["can_down"]) == (True, False)
    assert rows["theirs"]["owner"] == "eve"
    assert rows["theirs"]["usd_per_hour"] == "4.000000"


def test_an_administrators_token_for_one_project_shows_no_strays(root, project, job, strays):
    bound = caller_for(root.user, project=project)
    assert set(rows_of(bound.get("/clusters"))) == {"mpx-warm"}
    assert_problem(bound.post("/clusters/mpx-lost/actions/down"), 404, "not_found")


def test_an_idle_cluster_is_taken_down_once(maintainer, job, no_broker):
    assert rows_of(maintainer.get("/projects/rl/clusters"))["mpx-warm"]["can_down"] is True
    for _ in range(2):
        response = maintainer.post("/projects/rl/clusters/mpx-warm/actions/down")
        assert response.status_code == 202
        assert response.json()["can_down"] is False
    assert Cluster.objects.get().release_requested_at is not None
    event = JobEvent.objects.get(verb="cluster_down")
    assert event.actor == maintainer.user


def test_a_cluster_with_a_job_on_it_is_not_taken_down(maintainer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING))
    name = attempt.cluster.name
    response = maintainer.post(f"/projects/rl/clusters/{name}/actions/down")
    problem = assert_problem(response, 409, "conflict")
    assert f"Job {attempt.job_id} is on {name}" in problem["detail"]
    assert Cluster.objects.get().release_requested_at is None


def test_what_is_gone_already_is_not_taken_down_again(maintainer, job):
    Cluster.objects.update(status=ClusterStatus.GONE)
    path = "/projects/rl/clusters/mpx-warm/actions/down"
    assert_problem(maintainer.post(path), 409, "conflict")


def test_by_its_name_alone_a_cluster_is_found_in_ones_projects(maintainer, stranger, job):
    path = "/clusters/mpx-warm/actions/down"
    assert_problem(stranger.post(path), 404, "not_found")
    assert maintainer.post(path).status_code == 202


def test_a_quarantined_cluster_is_taken_down_by_an_administrator_alone(root, admin, strays, job):
    path = "/clusters/mpx-lost/actions/down"
    assert_problem(admin.post(path), 404, "not_found")
    assert_problem(caller_for(root.user, read_only=True).post(path), 403, "permission_denied")
    response = root.post(path)
    assert response.status_code == 202
    assert root.user.username in response.json()["note"]
    assert StrayCluster.objects.get(name="mpx-lost").ordered_by == root.user.username


def test_a_strangers_cluster_is_refused_to_every_user(root, strays):
    problem = assert_problem(root.post("/clusters/theirs/actions/down"), 409, "conflict")
    assert "not this portal's" in problem["detail"]


@pytest.mark.parametrize("name", ["no-such", "%00", "a%20b", "ü"])
def test_a_name_that_nothing_has_is_missing(root, project, name):
    assert_problem(root.post(f"/clusters/{name}/actions/down"), 404, "not_found")
    path = f"/projects/rl/clusters/{name}/actions/down"
    assert_problem(root.post(path), 404, "not_found")


@pytest.mark.feature("S3.4")
def test_nodes_of_skypilot_say_how_to_reach_them_for_as_long_as_they_are_there(viewer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING, backend_name="skypilot"))
    for rank in range(2):
        Worker.objects.create(attempt=attempt, rank=rank)
    path, name = f"/projects/rl/jobs/{attempt.job_id}/attempts", attempt.cluster.name

    def commands() -> list[str]:
        [shown] = viewer.get(path).json()["results"]
        return [worker["ssh"] for worker in shown["workers"]]

    assert commands() == [f"ssh {name}", f"ssh {name}-worker1"]
    Cluster.objects.update(status=ClusterStatus.GONE)
    assert commands() == ["", ""]
