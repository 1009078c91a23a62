"""mportal queue, quota and admin pool|queue|quota|project: what is sent, and what is printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.rest.fake_portal import MOMENT, ok, page, problem

pytestmark = pytest.mark.feature("P5.1")


def amount(what: str, used: float | None, cap: float | None) -> dict[str, Any]:
    free = None if used is None or cap is None else cap - used
    return {"what": what, "used": used, "cap": cap, "nominal": None, "free": free}


PLACE = {
    "kind": "pool", "name": "big", "backend": "local", "kept": 0, "problem": "",
    "amounts": [amount("nodes", 3, 8), amount("gpus:H100", 16, 64)],
    "queues": ["night"], "patience_s": 86400, "half_life_s": 604800,
    "reclaim": False, "preempts_by_rank": False,
}  # fmt: skip
QUEUE = {
    "name": "night", "rank": 5, "pool": "big", "waiting": 3, "held": 1, "running": 2,
    "preemptible": False,
}  # fmt: skip
QUOTA = {
    "id": 7, "kind": "project", "queue": "", "project": "rl", "user": "", "pool": "big",
    "amounts": [amount("jobs", 2, 4)], "people": [],
}  # fmt: skip
EACH = {
    **QUOTA, "id": 8, "kind": "each_person", "pool": "", "amounts": [amount("jobs", None, 2)],
    "people": [{"user": "ana", "amounts": [amount("jobs", 1, 2)]}],
}  # fmt: skip
SHARE = {
    "kind": "pool", "place": "big", "project": "rl", "used_hours": 12.5, "weight": 2.0,
    "counts_for": 6.25, "projects": 1, "percent": 40.0,
}  # fmt: skip
OTHERS = {**SHARE, "project": "", "weight": None, "counts_for": None, "projects": 3}
TURN = {
    "kind": "backend", "place": "local", "position": 1, "needs": "4 nodes", "since": MOMENT,
    "job_id": 42, "project": "rl", "name": "train", "owner": "ana", "queue": "default",
    "priority": 50, "sentence": "Needs 4 nodes; 1 of 4 is free on local.",
    "expected_at": "2026-01-01T00:00:00Z", "basis": "next",
}  # fmt: skip
HIDDEN = {
    **TURN, "position": 2, "job_id": None, "project": "", "name": "", "owner": "", "queue": "",
    "priority": None, "sentence": "", "expected_at": None, "basis": "",
}  # fmt: skip


def sent(portal: Any) -> Any:
    return json.loads(portal.requests[-1].content)


def lines(result: Any) -> list[str]:
    assert result.exit_code == 0, result.stderr
    found: list[str] = result.stdout.splitlines()
    return found


def test_queues_are_listed_with_who_waits_and_runs(portal, mportal):
    portal.on("GET /queues", page([QUEUE]))
    assert [line.split() for line in lines(mportal("queue", "list"))] == [
        ["QUEUE", "RANK", "POOL", "WAITING", "HELD", "RUNNING", "NOTE"],
        ["night", "5", "big", "3", "1", "2"],
    ]
    assert json.loads(mportal("queue", "list", "-o", "json").stdout) == [QUEUE]


def test_pools_quotas_and_shares_are_listed_with_what_is_used(portal, mportal):
    portal.on("GET /pools", page([PLACE, {**PLACE, "kind": "backend", "name": "local"}]))
    found = lines(mportal("queue", "pools"))
    assert "nodes 3/8, gpus:H100 16/64" in found[1]
    assert found[2].startswith("(local)")
    portal.on("GET /quotas", page([QUOTA, EACH]))
    found = lines(mportal("quota", "list"))
    assert found[1].split() == ["7", "project", "rl", "big", "jobs", "2/4"]
    assert (
        "each person in rl" in found[2] and "jobs <=2" in found[2] and "ana: jobs 1/2" in found[2]
    )
    assert mportal("quota", "list", "-q").stdout == "7\n8\n"
    portal.on("GET /shares", page([SHARE, OTHERS]))
    found = lines(mportal("queue", "shares"))
    assert found[1].split() == ["big", "rl", "12.5", "40", "%", "2", "6.2"]
    assert "(3 others)" in found[2]


def test_quotas_of_one_project_are_requested_of_it(portal, mportal):
    portal.on("GET /projects/rl/quotas", page([QUOTA]))
    assert len(lines(mportal("quota", "list", "-p", "rl"))) == 2


def test_who_waits_is_listed_in_turn_and_others_have_no_name(portal, mportal):
    portal.on("GET /queue", page([TURN, HIDDEN]))
    found = lines(mportal("queue", "jobs"))
    assert "now     Needs 4 nodes; 1 of 4 is free on local." in found[1]
    assert "(of another project)" in found[2]
    assert mportal("queue", "jobs", "-q").stdout == "42\n"


def test_a_pool_is_set_with_its_amounts_and_what_is_not_named_stays(portal, mportal):
    portal.on("PUT /pools/big", ok(PLACE))
    result = mportal("admin", "pool", "set", "big", "nodes=8", "gpus:H100=64", "--backend", "local")
    assert lines(result) == [
        "big: nodes 3/8, gpus:H100 16/64 on local; patience 24 h; half-life 7 d"
    ]
    assert sent(portal) == {"backend": "local", "caps": {"nodes": 8, "gpus:H100": 64}}
    mportal("admin", "pool", "set", "big", "--patience", "12h", "--half-life", "3d")
    assert sent(portal) == {"patience": "12h", "half_life": "3d"}
    without_unit = mportal("admin", "pool", "set", "big", "--patience", "12")
    assert without_unit.exit_code == 2
    assert "'12' is no length of time with its unit" in without_unit.stderr
    assert mportal("admin", "pool", "set", "big", "nodes").exit_code == 2


def test_a_queue_gets_a_pool_and_loses_it(portal, mportal):
    portal.on("PUT /queues/night", ok(QUEUE))
    result = mportal("admin", "queue", "set", "night", "--rank", "5", "--pool", "big")
    assert lines(result) == ["night: rank 5, pool big"]
    assert sent(portal) == {"rank": 5, "pool": "big"}
    mportal("admin", "queue", "set", "night", "--pool", "none")
    assert sent(portal) == {"pool": ""}


def test_a_quota_is_set_for_whom_it_is_said(portal, mportal):
    portal.on("POST /quotas", ok(EACH))
    result = mportal("admin", "quota", "set", "jobs=2", "-p", "rl", "--each-person")
    assert lines(result) == ["8: each person in rl: jobs <=2"]
    assert sent(portal) == {
        "queue": "", "project": "rl", "user": "", "per_person": True, "pool": "",
        "caps": {"jobs": 2},
    }  # fmt: skip


@pytest.mark.feature("P5.1")
def test_a_quota_of_money_may_have_cents_and_is_reported_with_them(portal, mportal):
    money = {"what": "usd_per_hour", "used": 12.8, "cap": 40.5, "free": 27.7, "nominal": None}
    portal.on("POST /quotas", ok({**QUOTA, "amounts": [money]}))
    result = mportal("admin", "quota", "set", "usd_per_hour=40.5", "nodes=8", "-p", "rl")
    assert "usd_per_hour 12.80/40.50" in lines(result)[0]
    assert sent(portal)["caps"] == {"usd_per_hour": 40.5, "nodes": 8}
    for wrong in ("usd_per_hour=-1", "usd_per_hour=1e3", "usd_per_hour=nan", "usd_per_hour=4."):
        assert mportal("admin", "quota", "set", wrong, "-p", "rl").exit_code == 2


@pytest.mark.feature("P5.4")
def test_preemption_is_set_and_said_of_pools_queues_and_quotas(portal, mportal):
    portal.on("PUT /pools/big", ok({**PLACE, "reclaim": True, "preempts_by_rank": True}))
    (said,) = lines(mportal("admin", "pool", "set", "big", "--reclaim", "--no-preempts-by-rank"))
    assert said.endswith("half-life 7 d; reclaims, preempts by rank")
    assert sent(portal) == {"reclaim": True, "preempts_by_rank": False}
    portal.on("PUT /queues/night", ok({**QUEUE, "preemptible": True}))
    (said,) = lines(mportal("admin", "queue", "set", "night", "--preemptible"))
    assert said == "night: rank 5, pool big, preemptible"
    assert sent(portal) == {"preemptible": True}
    own = {**QUOTA, "amounts": [{**amount("nodes", 3, 8), "nominal": 4}]}
    portal.on("POST /quotas", ok(own))
    set_it = ("admin", "quota", "set", "nodes=8", "-p", "rl", "--nominal")
    assert lines(mportal(*set_it, "nodes=4,gpus=32")) == ["7: project rl: nodes 3/8 (own 4)"]
    assert sent(portal)["nominal"] == {"nodes": 4, "gpus": 32}
    mportal(*set_it, "none")
    assert sent(portal)["nominal"] == {}
    assert mportal(*set_it, "nodes").exit_code == 2
    portal.on("GET /queues", page([{**QUEUE, "preemptible": True}]))
    assert lines(mportal("queue", "list"))[1].endswith("preemptible")
    portal.on("GET /pools", page([{**PLACE, "problem": "Away.", "reclaim": True}]))
    assert lines(mportal("queue", "pools"))[1].endswith("Away.; reclaims")


def test_a_project_is_made(portal, mportal):
    portal.on("POST /projects", ok({"slug": "rl", "name": "rl", "role": "admin"}, 201))
    assert lines(mportal("admin", "project", "add", "rl"))[0].startswith("rl: made")
    assert sent(portal) == {"slug": "rl", "name": ""}


@pytest.mark.feature("P5.2")
def test_a_project_gets_a_weight(portal, mportal):
    portal.on("PUT /projects/rl/weight", ok({"project": "rl", "weight": 2.0}))
    assert lines(mportal("admin", "project", "weight", "rl", "2")) == ["rl: weight 2"]
    assert sent(portal) == {"weight": 2.0}


@pytest.mark.parametrize(
    ("kind", "path", "name"),
    [("pool", "pools", "big"), ("queue", "queues", "night"), ("quota", "quotas", "7")],
)
def test_each_is_removed_or_the_portal_says_why_not(portal, mportal, kind, path, name):
    portal.on(f"DELETE /{path}/{name}", ok(None, 204), problem(409, "conflict", "Jobs wait there."))
    assert lines(mportal("admin", kind, "rm", name)) == [f"{name}: removed"]
    refused = mportal("admin", kind, "rm", name)
    assert (refused.exit_code, "Jobs wait there." in refused.stderr) == (125, True)


def test_the_timeline_lists_jobs_by_pool_with_times_from_now(mportal, portal):
    seen = {
        "kind": "running", "job_id": 7, "project": "rl", "name": "big", "owner": "ana",
        "status": "RUNNING", "attempt": 1, "num_nodes": 2, "gpu_type": "", "gpu_count": 0,
        "begin": "2026-03-01T10:00:00Z", "begin_basis": "began",
        "end": "2026-03-01T15:00:00Z", "end_basis": "bounds",
    }  # fmt: skip
    hidden = {**seen, "kind": "waiting", "job_id": None, "name": "", "status": "QUEUED",
              "begin": "2026-03-01T15:00:00Z", "begin_basis": "past_runs", "end": None,
              "end_basis": ""}  # fmt: skip
    lanes = [{"kind": "pool", "name": "a100", "jobs": [seen, hidden], "left_out": 3}]
    moments = {"now": "2026-03-01T12:00:00Z", "begin": MOMENT, "end": MOMENT}
    portal.on("GET /queue/timeline", ok({**moments, "lanes": lanes, "is_whole": True}))
    shown = mportal("queue", "timeline", "--hours", "12")
    assert portal.requests[-1].url.params["hours"] == "12"
    assert [" ".join(line.split()) for line in shown.stdout.splitlines()] == [
        "POOL JOB NAME STATUS NODES BEGIN END",
        "a100 7 big RUNNING 2 2 h ago in 3 h at the latest",
        "a100 - (of another project) QUEUED 2 in 3 h probably unknown",
    ]
    assert "a100: 3 more jobs wait." in shown.stderr
    assert mportal("queue", "timeline", "-q").stdout == "7\n"
