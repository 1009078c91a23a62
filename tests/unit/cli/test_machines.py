"""`mportal clusters`, `plan` and `infra`: what exists, what a job would cost, where it can run."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import yaml

from monarch_client.cli.output import dollars
from tests.unit.rest.fake_portal import MOMENT, attempt_json, job_json, ok, page, problem

PLAN = "POST /projects/rl/plan"
SPEC = "name: big\nrun: ./train\n"


def cluster_json(**fields: Any) -> dict[str, Any]:
    cluster = {
        "name": "mpx-warm",
        "kind": "row",
        "project": "rl",
        "backend": "skypilot",
        "status": "UP",
        "status_label": "Up",
        "note": "",
        "job": 42,
        "job_name": "hello",
        "is_busy": False,
        "infra": "slurm/main",
        "resources": "2x(H100:8)",
        "num_nodes": 2,
        "since": MOMENT,
        "idle_since": MOMENT,
        "idle_until": MOMENT,
        "usd_per_hour": "2.500000",
        "usd": "1.750000",
        "idle_usd": "0.250000",
        "owner": "",
        "can_down": True,
        "can_extend": True,
    }
    return {**cluster, **fields}


def candidate_json(**fields: Any) -> dict[str, Any]:
    candidate = {
        "infra": "aws/us-east-1",
        "instance_type": "p5.48xlarge",
        "cpus": "192",
        "memory": "2048",
        "accelerators": "H100:8",
        "use_spot": False,
        "usd_per_hour": "98.320000",
        "is_chosen": True,
    }
    return {**candidate, **fields}


def plan_json(**fields: Any) -> dict[str, Any]:
    chosen = candidate_json()
    plan = {
        "backend": "skypilot",
        "candidates": [chosen, candidate_json(infra="gcp", is_chosen=False, use_spot=True)],
        "chosen": chosen,
        "reasons": ["Azure is not enabled."],
        "problem": "",
        "is_pending": False,
        "max_duration_s": 36000,
        "usd_per_hour": "98.320000",
        "usd": "983.200000",
        "warnings": [],
    }
    return {**plan, **fields}


NO_PLAN = {"candidates": [], "chosen": None, "usd": None, "usd_per_hour": None, "reasons": []}


@pytest.fixture
def job_file(tmp_path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(SPEC)
    return str(path)


def test_clusters_say_whose_since_when_and_at_what_cost(mportal, portal):
    portal.on("GET /projects/rl/clusters", page([cluster_json()]))
    text = mportal("clusters").stdout
    for words in ("mpx-warm", "rl (job 42)", "UP, idle", "slurm/main", "$2.50", "$1.75"):
        assert words in text, words


def test_all_clusters_report_whose_they_are(mportal, portal):
    stray = {"project": "", "job": None, "idle_since": None, "usd": None}
    own = cluster_json(name="mpx-lost", kind="own", **stray)
    foreign = cluster_json(name="theirs", kind="foreign", owner="eve", **stray)
    portal.on("GET /clusters", page([cluster_json(), own, foreign]))
    text = mportal("clusters", "--all").stdout
    for words in ("nobody's", "eve", "rl (job 42)"):
        assert words in text, words
    assert mportal("clusters", "--all", "-q").stdout == "mpx-warm\nmpx-lost\ntheirs\n"


def test_one_cluster_that_is_refused_does_not_keep_the_others(mportal, portal):
    portal.on("POST /clusters/a/actions/down", problem(409, "conflict", "Job 7 is on a."))
    portal.on("POST /clusters/b/actions/down", ok(cluster_json(name="b"), 202))
    result = mportal("clusters", "down", "-y", "a", "b")
    assert result.exit_code == 125
    assert "Job 7 is on a." in result.stderr
    assert result.stdout == "b: terminating\n"


def test_taking_down_asks_first(mportal, portal):
    result = mportal("clusters", "down", "a", input="n\n")
    assert result.exit_code == 1
    assert portal.requests == []


def test_a_plan_shows_the_choice_and_its_price(mportal, portal, job_file):
    portal.on(PLAN, ok(plan_json()))
    result = mportal("plan", job_file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].startswith("->") and "aws/us-east-1" in lines[1] and "$98.32" in lines[1]
    assert "spot" in lines[2]
    assert "At most $983.20, for 10 h." in result.stdout
    assert "Azure is not enabled." in result.stderr
    [request] = portal.seen(PLAN)
    assert request.content.decode() == SPEC
    assert json.loads(mportal("plan", job_file, "-o", "json").stdout)["usd"] == "983.200000"


def test_a_plan_warns_of_what_is_beyond_the_budget_and_is_a_plan(mportal, portal, job_file):
    portal.on(PLAN, ok(plan_json(warnings=["It costs more than its budget_usd."])))
    result = mportal("plan", job_file)
    assert result.exit_code == 0
    assert "Warning: It costs more than its budget_usd." in result.stderr


def test_a_plan_that_is_being_made_is_waited_for(mportal, portal, job_file):
    pending = ok(plan_json(is_pending=True, problem="Asked.", **NO_PLAN))
    portal.on(PLAN, pending, pending, ok(plan_json()))
    assert mportal("plan", job_file).exit_code == 0
    assert len(portal.seen(PLAN)) == 3
    assert portal.pauses == [1.0, 1.0]


def test_a_plan_that_cannot_be_had_says_why(mportal, portal, job_file):
    portal.on(PLAN, ok(plan_json(problem="No launchable resource found.", **NO_PLAN)))
    result = mportal("plan", job_file)
    assert result.exit_code == 125
    assert "No launchable resource found." in result.stderr


def test_a_plan_of_something_wrong_shows_the_line(mportal, portal, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("num_node: 2\nrun: x\n")
    result = mportal("plan", str(path))
    assert result.exit_code == 2
    assert "num_node" in result.stderr
    assert portal.requests == []


def test_the_plans_of_several_documents_are_shown_with_their_total(mportal, portal, tmp_path):
    two = tmp_path / "two.yaml"
    two.write_text("name: a\nrun: echo\n---\nname: b\nrun: echo\n")
    made = {"backend": "fake", "candidates": [], "chosen": None, "reasons": [], "problem": "",
            "is_pending": False, "max_duration_s": 3600, "usd_per_hour": "1", "usd": "1.000000",
            "total_usd": "1.000000"}  # fmt: skip
    plans = {"results": [{**made, "name": name} for name in ("a", "b")], "num_jobs": 2}
    portal.on("POST /projects/rl/plan/batch", ok({**plans, "total_usd": "2.000000"}))
    for command in (["plan", str(two)], ["submit", "--estimate-cost", str(two)]):
        result = mportal(*command)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("a:\n") and "\nb:\n" in result.stdout
        assert "At most $2.00 in total, for 2 jobs." in result.stdout
    sent_texts = json.loads(portal.seen("POST /projects/rl/plan/batch")[0].content)["specs"]
    assert [yaml.safe_load(text).get("portal") for text in sent_texts] == [
        None, {"depends_on": ["a"]},
    ]  # fmt: skip
    assert mportal("plan", str(two), "-q").stdout == "2.000000\n"


def test_the_plan_of_an_array_shows_its_size_its_total_cost_and_the_values_of_the_portal(
    mportal, portal
):
    plan = {"backend": "fake", "candidates": [], "chosen": None, "reasons": [], "problem": "",
            "is_pending": False, "max_duration_s": 3600, "usd_per_hour": "2.0", "usd": "2.0",
            "summary": "1 node, array of 12 jobs, 4 at a time", "num_jobs": 12,
            "total_usd": "24.0", "defaults": [{"key": "portal.max_duration", "value": "1 h",
            "source": "limit of project rl"}]}  # fmt: skip
    portal.on("POST /projects/rl/plan", ok(plan))
    out = mportal("run", "--dry-run", "x").stdout
    assert "1 node, array of 12 jobs, 4 at a time." in out
    assert "At most $2.00 for each job" in out and "At most $24.00 in total." in out
    [row] = [line for line in out.splitlines() if "portal.max_duration" in line]
    assert row.split(maxsplit=1)[1].split() == ["1", "h", "limit", "of", "project", "rl"]


def place_json(**fields: Any) -> dict[str, Any]:
    place = {
        "backend": "skypilot",
        "num_nodes": None,
        "clouds": [
            {"name": "Slurm", "is_enabled": True, "reason": ""},
            {"name": "AWS", "is_enabled": False, "reason": "No credentials."},
        ],
        "cloud_problem": "",
        "gpus": [{"infra": "slurm/main", "gpu": "H100", "nodes": 3, "total": 24, "free": 5}],
        "gpu_problem": "",
        "asked_at": MOMENT,
        "is_asking": False,
    }
    return {**place, **fields}


def test_infra_shows_clouds_reasons_and_free_gpus(mportal, portal):
    waiting = place_json(asked_at=None, is_asking=True, clouds=[], gpus=[])
    portal.on("GET /infra", page([waiting]), page([place_json()]))
    text = mportal("infra").stdout
    for words in ("Slurm         enabled", "No credentials.", "H100: 5 of 24 free on 3 nodes"):
        assert words in text, words
    assert mportal("infra", "-q").stdout == "skypilot\n"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, ""),
        (Decimal("0.000000"), "$0"),
        (Decimal("0.004200"), "$0.0042"),
        (Decimal("2.500000"), "$2.50"),
        (Decimal("1234.5"), "$1,234.50"),
    ],
)
def test_amounts_are_reported_as_people_write_them(amount, shown):
    assert dollars(amount) == shown


def test_an_idle_cluster_is_kept_for_longer(mportal, portal):
    path = "POST /projects/rl/clusters/mpx-warm/actions/extend"
    portal.on(path, ok(cluster_json()))
    result = mportal("clusters", "extend", "mpx-warm", "2h")
    assert "mpx-warm: waits at least 2h for a job" in result.stdout + result.stderr
    assert [json.loads(request.content) for request in portal.seen(path)] == [{"duration": "2h"}]


def test_get_shows_what_a_job_has_cost_and_how_to_reach_its_nodes(mportal, portal):
    worker = {
        "rank": 1, "mesh": "", "address": "10.0.0.5:22222", "status": "RUNNING", "python": "3.11",
        "pid": 7, "exit_code": None, "detail": "", "ready_at": None, "ended_at": None,
        "ssh": "ssh mpx-worker1",
    }  # fmt: skip
    machines = {"infra": "slurm/main", "resources": "2x(H100:8)", "usd": "1.500000"}
    portal.on("GET /projects/rl/jobs/42", ok(job_json(usd="1.500000")))
    portal.on(
        "GET /projects/rl/jobs/42/attempts", page([attempt_json(workers=[worker], **machines)])
    )
    text = mportal("get", "42").stdout
    assert "Cost        $1.50" in text
    assert "slurm/main, 2x(H100:8), $1.50" in text
    assert "node 1: ssh mpx-worker1" in text
