"""mportal graph: the dependencies of a job as a tree."""

from __future__ import annotations

import json

from tests.unit.rest.fake_portal import ok

GRAPH = "GET /projects/rl/jobs/3/graph"


def job(number, name, status="SUCCEEDED", **fields):
    return {"job_id": number, "name": name, "status": status, **fields}


def edge(number, needs, after="success", state="met"):
    return {"job_id": number, "needs": needs, "after": after, "state": state}


DIAMOND = {
    "job_id": 3,
    "jobs": [
        job(1, "prep"),
        job(2, "train", "RUNNING"),
        job(3, "plot", "FAILED"),
        job(4, "eval", "QUEUED"),
        job(5, "publish", "", deleted=True),
    ],
    "edges": [
        edge(2, 1),
        edge(3, 1, after="end"),
        edge(4, 2, state="open"),
        edge(4, 3, state="broken"),
        edge(5, 4, state="open"),
    ],
    "is_whole": True,
}


def test_each_job_is_below_those_it_needs_and_its_dependents_below_the_first(mportal, portal):
    portal.on(GRAPH, ok(DIAMOND))
    assert mportal("graph", "3").stdout.splitlines() == [
        "1 prep SUCCEEDED",
        "|- 2 train RUNNING",
        "|  `- 4 eval QUEUED",
        "|     `- 5 publish unknown (deleted)",
        "`- 3 plot FAILED (after its end) <- this job",
        "   `- 4 eval QUEUED (can no longer start, see above)",
    ]


def test_a_part_of_a_large_graph_is_said_to_be_one(mportal, portal):
    cut = {"jobs": DIAMOND["jobs"][1:4], "is_whole": False}
    portal.on(GRAPH, ok({**DIAMOND, **cut}))
    shown = mportal("graph", "3")
    assert shown.stdout.splitlines()[0] == "2 train RUNNING"
    assert "There are more jobs" in shown.stderr


def test_a_chain_of_any_length_is_shown(mportal, portal):
    chain = range(1, 3000)
    edges = [edge(number, number - 1) for number in chain[1:]]
    portal.on(GRAPH, ok({**DIAMOND, "jobs": [job(n, "x") for n in chain], "edges": edges}))
    assert len(mportal("graph", "3").stdout.splitlines()) == len(chain)


def test_json_is_the_graph_and_quiet_its_numbers(mportal, portal):
    portal.on(GRAPH, ok(DIAMOND))
    assert len(json.loads(mportal("graph", "3", "-o", "json").stdout)["edges"]) == 5
    assert mportal("graph", "3", "-q").stdout.split() == ["1", "2", "3", "4", "5"]


def test_statuses_have_colors_on_a_terminal_unless_no_color_is_set(mportal, portal, monkeypatch):
    portal.on(GRAPH, ok(DIAMOND))
    assert "\x1b[31mFAILED" in mportal("graph", "3", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in mportal("graph", "3", color=True).stdout
