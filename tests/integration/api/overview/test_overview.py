"""GET /overview and /projects/{slug}/overview: what a team looks at first, in numbers."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.ground import clock
from jobs.models import Attempt, Budget, Cluster, Membership, Pool, Project
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from tests.factories import make_attempt, make_job, make_project, make_schedule
from tests.integration.api.conftest import assert_problem
from tests.sample_frames import tell_of_use

PATH = "/projects/rl/overview"
GPUS = {"num_nodes": 2, "gpu_type": "H100", "gpu_count": 16}
NOW = clock.now


@pytest.fixture(autouse=True)
def no_backends(settings) -> None:
    settings.MPORTAL_FAKE_BACKEND = ""


def overview(caller, path: str = PATH, **query: Any) -> dict[str, Any]:
    answer = caller.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def run_job(project: Project, **fields: Any):
    fields = {**GPUS, "status": JobStatus.RUNNING, "started_at": NOW(), **fields}
    job = make_job(project, **fields)
    attempt = make_attempt(job)
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.UP, usd_per_hour=Decimal(30)
    )
    return attempt


def fail_job(project: Project, reason: str, title: str = "", **fields: Any):
    job = make_job(project, status=JobStatus.FAILED, stop_reason=reason, **fields)
    make_attempt(job, ended_at=job.ended_at, diagnosis={"title": "An earlier attempt's"})
    make_attempt(job, ended_at=job.ended_at, diagnosis={"title": title} if title else {})
    Cluster.objects.filter(attempts__job=job).update(status=ClusterStatus.GONE, gone_at=NOW())
    return job


def test_running_and_waiting_jobs_have_their_gpus_reasons_and_numbers(viewer, project):
    small, big = run_job(project, num_nodes=1, gpu_count=1), run_job(project)
    tell_of_use(big, [60, 80])
    make_job(project, wait_reason="CAPACITY", message="Needs 8 nodes.", priority=60)
    make_job(project, wait_reason="HELD", held=True, priority=90)
    make_job(project, wait_reason="CAPACITY")
    run_job(make_project("elsewhere"))
    found = overview(viewer)
    assert (found["running"], found["waiting"], found["failed"]) == (2, 3, 0)
    assert [job["id"] for job in found["busy_jobs"]] == [big.job_id, small.job_id]
    assert found["busy_jobs"][0]["gpu_use"]["now"] == 80
    assert [job["message"] for job in found["waiting_jobs"]] == [
        "Needs 8 nodes.",
        "No free capacity",
        "Held by a user",
    ]
    assert [(row["reason"], row["jobs"]) for row in found["waiting_for"]] == [
        ("CAPACITY", 2),
        ("HELD", 1),
    ]


def test_a_waiting_job_has_its_expected_start(viewer, project, fake):
    fake.set_capacity(2)
    run_job(project, duration_s=3600, status=JobStatus.RUNNING)
    Attempt.objects.update(run_started_at=NOW())
    make_job(project, num_nodes=2)
    make_job(project, num_nodes=2)
    first, second = overview(viewer)["waiting_jobs"]
    left = datetime.fromisoformat(first["expected_at"]) - NOW()
    assert timedelta(minutes=50) < left < timedelta(minutes=90)
    # The job before it may last for ever.
    assert second["expected_at"] is None


def test_failures_of_a_day_are_grouped_by_diagnosis_or_reason(viewer, project):
    first = fail_job(project, StopReason.USER_CODE, "CUDA out of memory")
    second = fail_job(project, StopReason.OOM, name="last-one", title="")
    fail_job(project, StopReason.OOM, ended_at=NOW() - timedelta(hours=25))
    third = fail_job(project, StopReason.OOM)
    found = overview(viewer)
    assert found["failed"] == 3
    assert [
        (row["cause"], row["is_diagnosis"], row["jobs"], row["last_job"])
        for row in found["failures"]
    ] == [
        ("Out of memory", False, 2, third.pk),
        ("CUDA out of memory", True, 1, first.pk),
    ]
    assert second.pk < third.pk


def test_failures_without_a_diagnosis_are_grouped_by_exception_or_exit_code(viewer, project):
    here = "The program on rank {} (10.0.0.{})"
    corrupt = "raised ValueError: shard {} is corrupt: bad magic at train.py:8."
    for number in (3, 14):
        fail_job(
            project,
            StopReason.USER_CODE,
            message=f"{here.format(number, number)} {corrupt.format(number)}",
            exit_code=1,
        )
    again = " Attempt 1 ended the same way: no further try."
    for message, code in [
        (f"{here} raised RuntimeError: no such op at a.py:2.{again}", 1),
        (f"{here} raised KeyError.", 1),
        (f"{here} returned exit code 1.", 1),
        (f"{here} returned exit code 7.", 7),
    ]:
        fail_job(project, StopReason.USER_CODE, message=message.format(0, 1), exit_code=code)
    assert [(row["cause"], row["jobs"]) for row in overview(viewer)["failures"]] == [
        ("ValueError: shard 14 is corrupt: bad magic", 2),
        ("The program failed: exit code 7", 1),
        ("The program failed: exit code 1", 1),
        ("KeyError", 1),
        ("RuntimeError: no such op", 1),
    ]


def test_gpus_are_counted_by_type_as_held_idle_and_used(viewer, project):
    busy, idle = run_job(project), run_job(project)
    tell_of_use(busy, [70])
    tell_of_use(idle, [10])
    warm = Cluster.objects.create(
        project=project,
        name="warm",
        backend_name="fake",
        num_nodes=1,
        status=ClusterStatus.UP,
        gpu_type="H100",
        gpu_count=8,
        idle_since=NOW(),
    )
    Pool.objects.create(name="big", backend_name="fake", caps={"gpus:H100": 64})
    (row,) = overview(viewer)["gpus"]
    assert (row["gpu"], row["held"], row["idle"], row["use"]) == ("H100", 40, 8, 40.0)
    assert [(pool["name"], pool["total"]) for pool in row["pools"]] == [("big", 64)]
    Cluster.objects.filter(pk=warm.pk).update(status=ClusterStatus.STOPPED)
    assert overview(viewer)["gpus"][0]["held"] == 32


def test_idle_machines_are_warm_clusters_and_jobs_whose_gpus_are_idle(viewer, project):
    tell_of_use(run_job(project, name="notebook"), [1, 0], idle_min=40)
    tell_of_use(run_job(project, name="works"), [50])
    done = make_job(project, name="done", status=JobStatus.SUCCEEDED, num_nodes=4)
    warm = make_attempt(done, ended_at=NOW()).cluster
    Cluster.objects.filter(pk=warm.pk).update(
        status=ClusterStatus.UP,
        is_reusable=True,
        idle_since=NOW() - timedelta(minutes=4),
        usd_per_hour=Decimal(50),
        idle_policy={"minutes": 10},
    )
    found = overview(viewer)
    assert [(row["job_name"], row["is_busy"]) for row in found["idle"]] == [
        ("done", False),
        ("notebook", True),
    ]
    assert found["idle"][0]["ends_at"] is not None
    assert found["idle_usd_per_hour"] == "80.000000"


def test_costs_of_today_and_the_month_are_beside_the_budget(viewer, project, monkeypatch):
    now = NOW().replace(day=20, hour=12, minute=0)
    monkeypatch.setattr(clock, "now", lambda: now)

    def past(days: int, usd: int) -> None:
        began = now - timedelta(days=days, hours=2)
        Cluster.objects.create(
            project=project,
            name=f"past-{days}",
            backend_name="fake",
            num_nodes=1,
            status=ClusterStatus.GONE,
            created_at=began,
            gone_at=began + timedelta(hours=1),
            billed_at=began + timedelta(hours=1),
            usd=Decimal(usd),
            usd_per_hour=Decimal(usd),
        )

    past(0, 3)
    past(3, 67)
    past(15, 100)
    past(40, 1000)
    Budget.objects.create(project=project, usd=Decimal(500))
    spending = overview(viewer)["spending"]
    assert spending["today_usd"] == "3.000000"
    assert spending["month_usd"] == "170.000000"
    # 70 in a week is 10 a day until the month ends.
    end = (now.replace(day=28) + timedelta(days=4)).replace(day=1, hour=0, minute=0)
    left = (end - now) / timedelta(days=1)
    assert abs(float(spending["forecast_usd"]) - (170 + 10 * left)) < 0.01
    assert Decimal(spending["budget_usd"]) == 500


def test_changes_are_what_ended_since_a_moment(viewer, project):
    for hours, status in ((1, "FAILED"), (2, "SUCCEEDED"), (30, "SUCCEEDED"), (200, "CANCELLED")):
        make_job(project, status=JobStatus(status), ended_at=NOW() - timedelta(hours=hours))
    make_job(project)
    assert overview(viewer)["changes"]["counts"] == {"FAILED": 1, "SUCCEEDED": 1}
    since = (NOW() - timedelta(hours=40)).isoformat()
    assert overview(viewer, since=since)["changes"]["counts"] == {"FAILED": 1, "SUCCEEDED": 2}
    # However long ago the last visit was.
    counts = overview(viewer, since="2000-01-01T00:00:00Z")["changes"]["counts"]
    assert counts == {"FAILED": 1, "SUCCEEDED": 2}
    assert_problem(viewer.get(PATH, {"since": "x"}), 400, "invalid_request")


def test_the_next_times_of_schedules_come_in_their_order(viewer, project):
    make_schedule(project, "late", next_at=NOW() + timedelta(hours=9))
    make_schedule(project, "soon", next_at=NOW() + timedelta(hours=1))
    make_schedule(project, "paused", paused=True)
    assert [row["schedule"] for row in overview(viewer)["next_runs"]] == ["soon", "late"]


def test_all_projects_are_summed_up_for_their_members(viewer, project, stranger):
    second = make_project("second")
    Membership.objects.create(project=second, user=viewer.user, role=Role.VIEWER)
    hidden = make_project("hidden")
    for each in (project, second, second, hidden):
        run_job(each)
    Budget.objects.create(project=second, usd=Decimal(10))
    found = overview(viewer, "/overview")
    assert (found["project"], found["running"]) == ("", 3)
    assert [(row["project"], row["running"]) for row in found["projects"]] == [
        ("rl", 1),
        ("second", 2),
    ]
    # A sum of budgets says nothing while one project has none.
    assert found["spending"]["budget_usd"] is None
    assert found["spending"]["usd_per_hour"] == "90.000000"
    assert_problem(stranger.get(PATH), 404, "not_found")


def test_it_takes_as_many_queries_for_many_jobs_as_for_one(viewer, project):
    def make_one_of_each() -> None:
        tell_of_use(run_job(project), [50])
        tell_of_use(run_job(project), [0], idle_min=30)
        make_job(project, wait_reason="CAPACITY")
        fail_job(project, StopReason.OOM)
        make_schedule(project, f"at-{clock.now().timestamp():.6f}".replace(".", "-"))

    make_one_of_each()
    overview(viewer)
    with CaptureQueriesContext(connection) as one:
        overview(viewer)
    for _ in range(7):
        make_one_of_each()
    with CaptureQueriesContext(connection) as many:
        overview(viewer)
    assert len(many) == len(one)
