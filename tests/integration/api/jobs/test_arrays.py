"""Several jobs as one over REST: a batch, and arrays."""

from __future__ import annotations

import pytest

from jobs.models import Job
from tests.integration.api.conftest import assert_problem

BATCH = "/projects/rl/jobs/batch"
pytestmark = pytest.mark.feature("S2.6")


def spec(name: str, **portal) -> dict:
    return {"name": name, "run": "true", "resources": {"infra": "local"}, "portal": portal}


def test_a_list_of_specifications_is_submitted_as_one(member):
    answer = member.post(BATCH, {"specs": [spec("b", depends_on=["a"]), spec("a")]})
    assert answer.status_code == 201
    b, a = answer.json()["results"]
    assert (b["name"], b["wait_reason"]) == ("b", "DEPENDENCY")
    detail = member.get(f"/projects/rl/jobs/{b['id']}").json()
    assert detail["dependencies"] == [
        {"job": a["id"], "name": "a", "after": "success", "ended_as": "", "is_met": False}
    ]


def test_errors_of_several_documents_are_reported_by_the_lines_of_the_text(member):
    text = "name: a\nrun: 'true'\n---\nname: b\nrun: 'true'\nportal:\n  depends_on: [missing]\n"
    answer = member.post(BATCH, {"spec": text})
    assert_problem(answer, 422, "invalid_spec")
    [error] = answer.json()["errors"]
    assert (error["document"], error["line"], error["code"]) == (1, 7, "unknown_job")
    assert not Job.objects.exists()


def test_documents_of_one_text_run_in_order(member):
    text = "name: exp\n---\nrun: 'true'\n---\nname: b\nrun: 'true'\n---\nrun: 'true'\n"
    answer = member.post(BATCH, {"spec": text})
    assert answer.status_code == 201, answer.content
    first, second, third = Job.objects.order_by("pk")
    assert [job.name for job in (first, second, third)] == ["exp-1", "b", "exp-3"]
    needs = {
        job.pk: list(job.dependencies.values_list("needs_id", flat=True)) for job in (second, third)
    }
    assert needs == {second.pk: [first.pk], third.pk: [second.pk]}


@pytest.mark.parametrize("body", [{}, {"specs": []}, {"specs": [1]}, {"spec": "a", "specs": ["a"]}])
def test_a_batch_of_another_shape_is_refused(member, body):
    assert_problem(member.post(BATCH, body), 400, "invalid_request")


def test_the_jobs_of_an_array_come_in_pages(member):
    body = {"spec": spec("ppo", array={"seed": list(range(5))})}
    path = f"/projects/rl/arrays/{member.post('/projects/rl/jobs', body).json()['array']}"
    found, cursor = [], "0"
    while cursor is not None:
        page = member.get(f"{path}?limit=2&cursor={cursor}").json()
        assert page["counts"] == {"QUEUED": 5}
        found.append([job["array_index"] for job in page["jobs"]])
        cursor = page["next"]
    assert found == [[0, 1], [2, 3], [4]]
    assert page["previous"] == "2"
    assert_problem(member.get(f"{path}?limit=201"), 400, "invalid_request")


def test_an_array_is_read_cancelled_and_run_again(member):
    body = {"spec": spec("ppo", array={"lr": ["1e-4", "3e-4"]}, max_parallel=1)}
    first = member.post("/projects/rl/jobs", body).json()
    path = f"/projects/rl/arrays/{first['array']}"
    array = member.get(path).json()
    assert (array["name"], array["size"], array["max_parallel"]) == ("ppo", 2, 1)
    assert (array["counts"], array["values"]) == ({"QUEUED": 2}, {"lr": ["1e-4", "3e-4"]})
    assert [job["array_values"] for job in array["jobs"]] == [{"lr": "1e-4"}, {"lr": "3e-4"}]
    assert array["url"].endswith(f"/rl/arrays/{array['id']}")
    cancelled = member.post(f"{path}/actions/cancel")
    assert (cancelled.status_code, cancelled.json()["counts"]) == (202, {"CANCELLED": 2})
    again = member.post(f"{path}/actions/rerun-failed")
    assert (again.status_code, again.json()["counts"]) == (201, {"QUEUED": 2})
    listed = member.get(f"/projects/rl/jobs?array={array['id']}").json()["results"]
    assert len(listed) == 4
    assert_problem(member.post(f"{path}/actions/rerun-failed"), 409, "conflict")
    assert_problem(member.get("/projects/rl/arrays/4711"), 404, "not_found")
