"""mportal history and mportal compare."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.rest.fake_portal import ended_job, ok

HISTORY = "GET /projects/rl/history"
COMPARE = "GET /compare"


def run_json(place: int, job: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    loss = {"name": "loss", "rank": 0, "step": 9, "value": 0.25, "lowest": 0.2, "highest": 2.0}
    own = {
        "job": job or ended_job(id=40 + place, usd="1.500000"),
        "wait_s": 30.0,
        "duration_s": 90.0,
        "code": "abababababab",
        "metrics": [loss],
    }
    return {**own, **fields}


def test_the_history_of_a_name_is_a_row_for_each_run(portal, mportal) -> None:
    failed = ended_job("FAILED", id=41, stop_reason="OOM")
    rows = [run_json(2, number=2), run_json(1, failed, number=1, metrics=[])]
    portal.on(HISTORY, ok({"results": rows, "next": None, "previous": None}))
    shown = mportal("history", "hello", "-n", "5")
    assert shown.exit_code == 0, shown.stderr
    heading, newest, oldest = shown.stdout.splitlines()
    assert heading.split() == [
        "RUN",
        "JOB",
        "STATUS",
        "REASON",
        "AGE",
        "WAITED",
        "DURATION",
        "COST",
        "NODES",
        "CODE",
        "loss",
    ]
    assert newest.split()[:3] == ["2", "42", "SUCCEEDED"]
    assert newest.split()[-3:] == ["1", "abababababab", "0.25"]
    assert "OOM" in oldest
    assert dict(portal.requests[-1].url.params) == {"name": "hello", "limit": "5"}
    assert mportal("history", "hello", "-q").stdout.split() == ["42", "41"]
    chosen = mportal("history", "hello", "-m", "loss", "-o", "json")
    assert [each["number"] for each in json.loads(chosen.stdout)] == [2, 1]


def test_a_metric_with_the_name_of_a_column_has_a_column_of_its_own(portal, mportal) -> None:
    metric = {"rank": 0, "step": 9, "value": 0.25, "lowest": 0.2, "highest": 2.0, "name": "COST"}
    rows = [run_json(1, number=1, metrics=[metric])]
    portal.on(HISTORY, ok({"results": rows, "next": None, "previous": None}))
    heading, run = mportal("history", "hello").stdout.splitlines()
    assert "$1.50" in run and run.endswith(" 0.25")
    assert heading.endswith("metric COST")


def test_a_metric_that_no_run_reported_is_refused_with_the_names_of_those_that_exist(
    portal, mportal
) -> None:
    rows = [run_json(1, number=1)]
    portal.on(HISTORY, ok({"results": rows, "next": None, "previous": None}))
    portal.on(COMPARE, ok({"runs": [run_json(2), run_json(1)]}))
    for command in (("history", "hello"), ("compare", "42", "41")):
        shown = mportal(*command, "-m", "los")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert "reported no metric los. They reported: loss." in " ".join(shown.stderr.split())


def test_a_history_that_goes_on_states_how_many_runs_are_listed(portal, mportal) -> None:
    rows = [run_json(1, number=1)]
    portal.on(HISTORY, ok({"results": rows, "next": "after:41", "previous": None}))
    assert "the newest 1 runs. Use -n for more, at most 200." in mportal("history", "hello").stderr


def test_a_name_without_a_run_exits_with_1(portal, mportal) -> None:
    portal.on(HISTORY, ok({"results": [], "next": None, "previous": None}))
    shown = mportal("history", "hello")
    assert (shown.exit_code, shown.stderr) == (1, "There is no job named hello.\n")


def test_a_comparison_has_a_column_for_each_job(portal, mportal) -> None:
    found = {
        "runs": [run_json(2), run_json(1, metrics=[])],
        "fields": [{"path": "envs.LR", "values": ["0.1", None]}],
        "changes": [{"job": 41, "lines": ["@@ -1 +1 @@", "-LR: 0.1"]}],
        "series": [],
        "gpu_use": [None, None],
    }
    portal.on(COMPARE, ok(found))
    shown = mportal("compare", "42", "41", "--diff")
    assert shown.exit_code == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0] == ["JOB", "42", "JOB", "41"]
    assert ["Cost", "$1.50", "$1.50"] in rows
    assert ["loss", "0.25"] in rows
    assert ["envs.LR", "0.1"] in rows
    assert "From job 42 to job 41:\n@@ -1 +1 @@\n-LR: 0.1\n" in shown.stdout
    assert dict(portal.requests[-1].url.params) == {"jobs": "42,41"}
    assert json.loads(mportal("compare", "42", "41", "-o", "json").stdout)["fields"]


def test_two_to_six_jobs_are_compared(portal, mportal) -> None:
    for numbers in (["42"], ["42", "42"], [str(n) for n in range(1, 8)]):
        shown = mportal("compare", *numbers)
        assert (shown.exit_code, "two to 6 different jobs" in shown.stderr) == (2, True)
    assert not portal.requests
