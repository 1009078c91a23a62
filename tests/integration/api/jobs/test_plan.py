"""The plan: where a job could run and for how much, before anything starts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.backends import registry
from jobs.backends.base import Candidate, Plan
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendError, BackendUnavailableError, StillLookingError
from jobs.models import Cluster, Job, Project
from jobs.statuses import ClusterStatus
from tests.integration.api.conftest import YAML, assert_problem

SPEC = "name: big\nnum_nodes: 2\nrun: ./train\nportal: {max_duration: 12h}\n"


@pytest.fixture(autouse=True)
def fake(settings, tmp_path) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    return backend


def plan_of(caller: Any, spec: str = SPEC) -> dict[str, Any]:
    response = caller.post("/projects/rl/plan", spec, content_type="application/yaml")
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    return body


def candidate(infra: str, usd_per_hour: str, *, is_chosen: bool = False) -> Candidate:
    price = Decimal(usd_per_hour)
    return Candidate(infra, "p5.48xlarge", "192", "2048", "H100:8", False, price, is_chosen)


@pytest.mark.feature("S2.7")
def test_it_shows_prices_and_the_choice_and_starts_nothing(member, fake):
    fake.set_price("2.50")
    plan = plan_of(member)
    [only] = plan["candidates"]
    assert only == plan["chosen"]
    assert (only["infra"], only["usd_per_hour"], only["is_chosen"]) == ("fake", "5.000000", True)
    assert (plan["usd_per_hour"], plan["max_duration_s"]) == ("5.000000", 12 * 3600)
    assert plan["usd"] == "60.000000"
    assert (plan["problem"], plan["is_pending"]) == ("", False)
    assert not Job.objects.exists()
    assert fake.calls() == []


def test_a_job_that_names_a_cluster_is_planned_on_the_backend_of_that_cluster(member, project):
    fields = {"backend_name": "local", "is_reusable": True, "status": ClusterStatus.UP}
    Cluster.objects.create(project=project, name="mpa-1", num_nodes=2, **fields)
    assert registry.names()[0] == "fake"
    plan = plan_of(member, f"{YAML}portal: {{cluster: mpa-1}}\n")
    assert (plan["backend"], plan["chosen"]["infra"]) == ("local", "local")


def test_the_chosen_one_comes_first_then_the_cheapest(member, monkeypatch):
    offers = Plan(
        (candidate("aws", "9"), candidate("gcp", "3"), candidate("slurm", "5", is_chosen=True)),
        ("Azure is not enabled.",),
    )
    monkeypatch.setattr(FakeBackend, "plan", lambda *_: offers)
    plan = plan_of(member)
    assert [each["infra"] for each in plan["candidates"]] == ["slurm", "gcp", "aws"]
    assert plan["reasons"] == ["Azure is not enabled."]


@pytest.mark.feature("P5.6")
def test_a_job_that_may_cost_more_than_its_budget_is_warned_of_and_not_refused(member, fake):
    fake.set_price("2.50")
    [warning] = plan_of(member, SPEC.replace("12h", "12h, budget_usd: 40"))["warnings"]
    assert warning == (
        "It costs $60.00 if it runs for 12 h, and its budget_usd is $40.00: it is stopped when "
        "that is spent."
    )
    assert plan_of(member, SPEC.replace("12h", "12h, budget_usd: 60"))["warnings"] == []
    assert plan_of(member, SPEC)["warnings"] == []
    beyond = SPEC.replace("12h", "12h, budget_usd: 40")
    answer = member.post("/projects/rl/jobs", beyond, content_type="application/yaml")
    assert answer.status_code == 201


def test_without_a_limit_there_is_no_price_of_the_whole(member, project):
    assert plan_of(member, YAML)["usd"] is None
    Project.objects.filter(pk=project.pk).update(max_duration_s=3600)
    assert plan_of(member, YAML)["usd"] == "1.200000"


def test_a_backend_of_the_portals_own_machines_costs_nothing(member, settings):
    settings.MPORTAL_FAKE_BACKEND = ""
    plan = plan_of(member)
    assert (plan["chosen"]["infra"], plan["usd_per_hour"], plan["usd"]) == (
        "local",
        "0.000000",
        "0.000000",
    )


@pytest.mark.parametrize(
    ("error", "is_pending"),
    [
        (BackendError("No launchable resource found for task big."), False),
        (BackendUnavailableError("SkyPilot's API server does not answer."), False),
        (StillLookingError("SkyPilot is being queried for prices."), True),
    ],
)
def test_a_plan_that_cannot_be_had_says_why_in_the_backends_words(
    member, monkeypatch, error, is_pending
):
    def refuse(*_: object) -> Plan:
        raise error

    monkeypatch.setattr(FakeBackend, "plan", refuse)
    plan = plan_of(member)
    assert (plan["problem"], plan["is_pending"]) == (str(error), is_pending)
    assert (plan["candidates"], plan["chosen"], plan["usd"]) == ([], None, None)


def test_a_fault_of_a_backend_is_reported_and_no_500(member, monkeypatch):
    def fail(*_: object) -> Plan:
        raise KeyError("price")

    monkeypatch.setattr(FakeBackend, "plan", fail)
    assert "KeyError" in plan_of(member)["problem"]


def test_when_nothing_fits_that_is_said(member, monkeypatch):
    monkeypatch.setattr(FakeBackend, "plan", lambda *_: Plan((), ("No H100 anywhere.",)))
    plan = plan_of(member)
    assert plan["problem"] and plan["reasons"] == ["No H100 anywhere."]


def test_a_specification_with_errors_is_refused_as_by_a_submit(member):
    response = member.post("/projects/rl/plan", "num_node: 2\n", content_type="application/yaml")
    problem = assert_problem(response, 422, "invalid_spec")
    assert {row["path"] for row in problem["errors"]} >= {"num_node"}


ARRAY = (
    "name: sweep\nrun: ./x\nportal: {max_duration: 1h, array: {n: [1, 2, 3]}, max_parallel: 2}\n"
)


def test_the_plan_of_an_array_has_its_size_and_the_cost_of_all_its_jobs(member, fake):
    fake.set_price("2.50")
    plan = plan_of(member, ARRAY)
    assert (plan["num_jobs"], plan["summary"]) == (3, "1 node, array of 3 jobs, 2 at a time")
    assert (plan["usd"], plan["total_usd"]) == ("2.500000", "7.500000")


def test_the_plan_lists_the_values_that_the_specification_leaves_to_the_portal(member, project):
    Project.objects.filter(pk=project.pk).update(max_duration_s=7200)
    defaults = plan_of(member, "name: a\nrun: ./x\nportal: {priority: 10}\n")["defaults"]
    found = {each["key"]: (each["value"], each["source"]) for each in defaults}
    assert found["portal.max_duration"] == ("2 h", "limit of project rl")
    assert found["resources.infra"] == ("fake", "chosen by the portal")
    assert (found["num_nodes"], found["portal.queue"]) == (("1", "default"), ("default", "default"))
    assert "portal.priority" not in found


def test_the_plan_lists_the_same_values_for_a_specification_in_json(member):
    spec = {"name": "a", "run": "./x", "num_nodes": 2, "resources": {"infra": "fake"}}
    answer = member.post("/projects/rl/plan", {"spec": spec}, content_type="application/json")
    keys = {each["key"] for each in answer.json()["defaults"]}
    assert "portal.queue" in keys and not keys & {"num_nodes", "resources.infra"}


TWO = "name: exp\n---\nname: a\nrun: ./a\n---\nrun: ./b\nportal: {max_duration: 2h}\n"


def test_several_documents_are_planned_as_they_would_be_submitted_together(member, project, fake):
    Project.objects.filter(pk=project.pk).update(max_duration_s=3600 * 20)
    fake.set_price("1.00")
    answer = member.post("/projects/rl/plan/batch", TWO, content_type="application/yaml")
    assert answer.status_code == 200, answer.content
    plans = answer.json()
    first, second = plans["results"]
    assert (first["name"], first["usd"], first["start"]["code"]) == ("a", "20.000000", "next")
    assert (second["name"], second["usd"], second["start"]["code"]) == (
        "exp-2", "2.000000", "dependency",
    )  # fmt: skip
    assert second["start"]["sentence"] == "It waits for a, submitted together with it."
    assert (plans["num_jobs"], plans["total_usd"]) == (2, "22.000000")
    listed = member.post("/projects/rl/plan/batch", {"specs": [SPEC, SPEC.replace("big", "b")]})
    assert [each["name"] for each in listed.json()["results"]] == ["big", "b"]
    assert not Job.objects.exists()


def test_documents_with_equal_requests_are_planned_with_one_read_of_the_queue(member):
    numbers = {}
    for count in (2, 20):
        specs = [f"name: a{number}\nrun: ./a {number}\n" for number in range(count)]
        with CaptureQueriesContext(connection) as queries:
            answer = member.post("/projects/rl/plan/batch", {"specs": specs})
        assert [each["start"]["code"] for each in answer.json()["results"]] == ["next"] * count
        numbers[count] = len(queries)
    # Each document is checked with the queues and the quotas.
    assert numbers[20] - numbers[2] <= 2 * 18


def test_arrays_with_equal_requests_keep_their_own_sizes_in_one_plan(member):
    array = "name: a{size}\nrun: ./a\nportal: {{array: {{lr: {values}}}, max_parallel: 2}}\n"
    specs = [array.format(size=size, values=list(range(size))) for size in (3, 5)]
    answer = member.post("/projects/rl/plan/batch", {"specs": specs})
    starts = [each["start"]["sentence"] for each in answer.json()["results"]]
    assert [each.split(" jobs")[0] for each in starts] == ["2 of its 3", "2 of its 5"]


@pytest.mark.parametrize("path", ["jobs", "plan"])
def test_a_request_for_one_job_names_the_one_for_several_documents(member, path):
    answer = member.post(f"/projects/rl/{path}", TWO, content_type="application/yaml")
    assert_problem(answer, 422, "invalid_spec")
    [error] = answer.json()["errors"]
    assert f"takes one. Send it to .../{path}/batch" in error["message"]
    assert error["line"] == 5
    assert not Job.objects.exists()


@pytest.mark.parametrize(("path", "status"), [("jobs", 201), ("plan", 200)])
def test_a_header_above_one_document_is_no_second_specification(member, path, status):
    text = "name: exp\n---\nrun: ./b\n"
    answer = member.post(f"/projects/rl/{path}", text, content_type="application/yaml")
    assert (answer.status_code, answer.json()["name"]) == (status, "exp")
