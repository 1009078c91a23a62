"""The runs of one name, and the comparison of runs."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.ground import clock
from jobs.models import Attempt, GpuUse, Job, JobCode, ProgramSeries
from jobs.readers.runs import runs_of
from jobs.statuses import JobStatus, Role
from tests.factories import make_attempt, make_job, make_member, make_project, make_spec
from tests.integration.api.conftest import assert_problem, caller_for

HISTORY = "/projects/rl/history"


def make_run(project, took_s: int = 60, usd: str = "1.5", lr: str = "0.1", **fields) -> Job:
    """Create a job that waited 30 s and ran, with its attempt."""
    now = clock.now()
    began = now - timedelta(seconds=took_s)
    defaults = {
        "name": "ppo",
        "status": JobStatus.SUCCEEDED,
        "created_at": began - timedelta(seconds=30),
        "started_at": began,
        "ended_at": now,
        "spec": make_spec(name="ppo", envs={"LR": lr}),
        "spec_source": f"name: ppo\nenvs:\n  LR: {lr}\nrun: echo hello\n",
    }
    job = make_job(project, **{**defaults, **fields})
    make_attempt(job, usd=Decimal(usd), ended_at=job.ended_at)
    return job


def add_series(attempt: Attempt, name: str, steps: range, rank: int = 0) -> ProgramSeries:
    """Store a metric whose value is 10 times its step."""
    begin = attempt.job.created_at.timestamp()
    points = [[begin + step, step, 1, 10.0 * step] for step in steps]
    return ProgramSeries.objects.create(
        attempt=attempt,
        rank=rank,
        name=name,
        at=points[-1][0],
        step=steps[-1],
        value=points[-1][3],
        lowest=points[0][3],
        highest=points[-1][3],
        recent=points,
    )


def history(caller, **query):
    answer = caller.get(HISTORY, {"name": "ppo", **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_history_of_a_name_has_times_cost_code_and_last_metrics(viewer, project):
    first = make_run(project, took_s=60)
    make_run(project, name="other")
    make_run(make_project("elsewhere"))
    second = make_run(
        project, took_s=90, usd="2", spec=make_spec(name="ppo", workdir="upload:" + "ab" * 32)
    )
    attempt = second.attempts.get()
    add_series(attempt, "loss", range(1, 4), rank=1)
    add_series(attempt, "loss", range(1, 6))
    newest, oldest = history(viewer)["results"]
    assert [newest["job"]["id"], oldest["job"]["id"]] == [second.pk, first.pk]
    assert [newest["number"], oldest["number"]] == [2, 1]
    assert newest["wait_s"] == pytest.approx(30, abs=1)
    assert newest["duration_s"] == pytest.approx(90, abs=1)
    assert newest["job"]["usd"] == "2.000000"
    assert (newest["code"], oldest["code"]) == ("ab" * 6, "")
    assert newest["metrics"] == [
        {"name": "loss", "rank": 0, "step": 5, "value": 50.0, "lowest": 10.0, "highest": 50.0}
    ]
    page = history(viewer, limit=1)
    assert [row["number"] for row in page["results"]] == [2]
    assert [r["number"] for r in history(viewer, limit=1, cursor=page["next"])["results"]] == [1]
    assert history(viewer, name="none")["results"] == []


def test_the_code_is_what_was_synchronized_or_the_repository(viewer, project):
    git = {"url": "https://example.com/r.git", "ref": "main"}
    make_run(project, spec=make_spec(name="ppo", workdir=git))
    synced = make_run(project)
    JobCode.objects.create(
        job=synced, digest="cd" * 32, tree="t", size_bytes=1, file_count=1, attempt_number=1
    )
    codes = [row["code"] for row in history(viewer)["results"]]
    assert codes == ["cd" * 6, "https://example.com/r.git@main"]


def test_a_job_that_waits_has_no_duration_and_one_that_never_started_no_wait(viewer, project):
    make_run(project, status=JobStatus.QUEUED, started_at=None, ended_at=None)
    make_run(project, status=JobStatus.CANCELLED, started_at=None)
    cancelled, queued = history(viewer)["results"]
    assert queued["wait_s"] > 0 and queued["duration_s"] is None
    assert (cancelled["wait_s"], cancelled["duration_s"]) == (None, None)


def test_it_takes_as_many_queries_for_many_runs_as_for_two(viewer, project):
    def queries() -> list[int]:
        counts = []
        jobs = ",".join(str(pk) for pk in Job.objects.values_list("pk", flat=True)[:6])
        for path, query in ((HISTORY, {"name": "ppo"}), ("/compare", {"jobs": jobs})):
            with CaptureQueriesContext(connection) as captured:
                assert viewer.get(path, query).status_code == 200
            counts.append(len(captured))
        return counts

    def add(count: int) -> None:
        for _ in range(count):
            job = make_run(project)
            add_series(job.attempts.get(), "loss", range(1, 3))
            add_series(job.attempts.get(), "acc", range(1, 3))

    add(2)
    # The first request of a token notes its use.
    queries()
    few = queries()
    add(4)
    assert queries() == few


def compare(caller, *jobs: Job):
    answer = caller.get("/compare", {"jobs": ",".join(str(job.pk) for job in jobs)})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_comparison_has_differences_of_the_specifications_and_the_metrics(viewer, project):
    first, second = make_run(project, lr="0.1"), make_run(project, lr="0.2")
    add_series(first.attempts.get(), "loss", range(1, 4))
    add_series(second.attempts.get(), "loss", range(1, 5))
    GpuUse.objects.create(
        attempt=second.attempts.get(),
        job=second,
        at=clock.now(),
        busy_at=clock.now(),
        points=[[1.0, 1, 50.0, 40.0]],
    )
    found = compare(viewer, second, first)
    assert [run["job"]["id"] for run in found["runs"]] == [second.pk, first.pk]
    assert found["fields"] == [{"path": "envs.LR", "values": ["0.2", "0.1"]}]
    (changes,) = found["changes"]
    assert changes["job"] == first.pk
    assert ("-  LR: 0.2" in changes["lines"], "+  LR: 0.1" in changes["lines"]) == (True, True)
    assert [(each["job"], each["name"], each["steps"]) for each in found["series"]] == [
        (second.pk, "loss", [1, 2, 3, 4]),
        (first.pk, "loss", [1, 2, 3]),
    ]
    assert found["series"][0]["values"] == [10.0, 20.0, 30.0, 40.0]
    assert [use and use["mean"] for use in found["gpu_use"]] == [[50.0], None]


def test_attempts_of_a_run_are_one_series_in_which_the_later_one_replaces_steps(viewer, project):
    first, second = make_run(project), make_run(project)
    add_series(first.attempts.get(), "loss", range(1, 6))
    later = make_attempt(first, number=2)
    add_series(later, "loss", range(4, 9))
    found = compare(viewer, first, second)
    (series,) = found["series"]
    assert series["steps"] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found["runs"][0]["metrics"][0]["step"] == 8


def test_runs_of_several_projects_are_compared_where_all_of_them_are_visible(project):
    other = make_project("vision")
    mine, theirs = make_run(project), make_run(other)
    reader = make_member(project, Role.VIEWER)
    problem = caller_for(reader).get("/compare", {"jobs": f"{mine.pk},{theirs.pk}"})
    assert_problem(problem, 404, "not_found")
    other.memberships.create(user=reader, role=Role.VIEWER)
    found = compare(caller_for(reader), mine, theirs)
    assert [run["job"]["project"] for run in found["runs"]] == ["rl", "vision"]
    bound = caller_for(reader, project=project).get("/compare", {"jobs": f"{mine.pk},{theirs.pk}"})
    assert_problem(bound, 404, "not_found")


def test_a_job_that_is_deleted_while_it_is_compared_is_not_found(viewer, project, monkeypatch):
    jobs = [make_run(project) for _ in range(2)]

    def delete_first(found, rights):
        Job.objects.filter(pk=jobs[0].pk).delete()
        return runs_of(found, rights)

    monkeypatch.setattr("jobs.readers.comparison.runs_of", delete_first)
    answer = viewer.get("/compare", {"jobs": ",".join(str(job.pk) for job in jobs)})
    problem = assert_problem(answer, 404, "not_found")
    assert problem["detail"].startswith(f"There is no job {jobs[0].pk}")


@pytest.mark.parametrize("jobs", ["1", "1,1", "a,b", "1,2,3,4,5,6,7", "1,", "1," + "9" * 30])
def test_two_to_six_numbers_are_compared(viewer, jobs):
    assert_problem(viewer.get("/compare", {"jobs": jobs}), 400, "invalid_request")
