"""mportal meshes: a tree of hosts, procs and actors, and what failed when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import mesh_frames
from tests.unit.rest.fake_portal import MOMENT, ok

MESH = "GET /projects/rl/jobs/42/mesh"
LOST = "GET /v1/trainers at 07:31:02 UTC, not for the first time: 404 not_found: no agent"
FAILED = "Traceback:\n  File x\nValueError: bad \x1b[2Jnumber 7"


def reported(node: dict[str, Any], state: str | None = None) -> dict[str, Any]:
    """Return a node of a tree as the portal reports it; `state` is its present state."""
    below: dict[str, Any] = {
        name: [reported(each, state) for each in node[name]]
        for name in ("procs", "actors")
        if name in node
    }
    return {**node, **below, "told": node["state"], "state": state or node["state"]}


def host(rank: int | None = 0, state: str | None = None, **fields: Any) -> dict[str, Any]:
    mesh = "" if rank is None else "trainers"
    return {**reported(mesh_frames.host(rank, **fields), state), "mesh": mesh}


def meshes(*hosts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "attempt": 1,
        "is_monarch": True,
        "is_over": False,
        "is_final": False,
        "is_known": True,
        "at": MOMENT,
        "why": "",
        "left_out": 0,
        "hosts": list(hosts),
        "changes": [],
        **fields,
    }


def change(**fields: Any) -> dict[str, Any]:
    line = {"number": 9, "stream": "stderr", "at": MOMENT, "text": "Killed\n"}
    return {
        "at": MOMENT,
        "rank": 1,
        "host": "host<h1>",
        "proc": "trainers<p1>",
        "actor": "",
        "state": "dead",
        "was": "alive",
        "why": LOST,
        "is_failure": True,
        "lines": [line],
        **fields,
    }


@pytest.mark.feature("P4.2")
def test_a_tree_names_hosts_procs_and_actors_with_their_states_and_failures(portal, mportal):
    sick = mesh_frames.proc(
        "trainers<p2>",
        state="poisoned",
        why="1 of its actors failed",
        left_out=3,
        actors=[mesh_frames.actor("worker<a2>", state="failed", why=FAILED)],
    )
    portal.on(MESH, ok(meshes(host(0, procs=[mesh_frames.proc(), sick]), host(None, procs=[]))))
    done = mportal("meshes", "42")
    assert done.exit_code == 0
    head, _, names, *rows = done.stdout.splitlines()
    assert head.startswith("Attempt 1, ")
    assert names.startswith("HOST, PROC, ACTOR")
    assert [" ".join(row.split()) for row in rows] == [
        "node 0 trainers up",
        "trainers alive",
        "probe (train.Probe) running",
        "trainers poisoned 1 of its actors failed",
        "worker (train.Probe) failed ValueError: bad number 7",
        "and 3 more actors, not listed",
        "driver up",
    ]
    assert [len(row) - len(row.lstrip()) for row in rows] == [0, 2, 4, 2, 4, 4, 0]


@pytest.mark.feature("P4.2")
def test_what_failed_is_reported_with_its_evidence_and_last_lines(portal, mportal):
    portal.on(MESH, ok(meshes(host(1), changes=[change(), *[change(lines=[])] * 11])))
    done = mportal("meshes", "42")
    assert done.stdout.count("trainers of host on node 1 is dead, was alive") == 10
    assert f"    {LOST}\n  the last lines of node 1 by then:\n    9 Killed\n" in done.stdout
    assert "2 earlier changes" in done.stderr


def test_states_that_are_not_known_say_what_they_were_and_why(portal, mportal):
    portal.on(MESH, ok(meshes(host(0, "unknown"), is_known=False, why="No report.")))
    done = mportal("meshes", "42")
    assert "How they are now is not known: No report." in done.stdout
    assert "unknown, was up" in done.stdout


def test_json_has_all_that_the_portal_returns(portal, mportal):
    portal.on(MESH, ok(meshes(host(0), changes=[change()])))
    found = json.loads(mportal("meshes", "42", "-a", "1", "-o", "json").stdout)
    assert found["hosts"][0]["procs"][0]["actors"][0]["messages"] == 3
    assert found["changes"][0]["lines"][0]["number"] == 9
    assert portal.requests[-1].url.params["attempt"] == "1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"is_monarch": False}, "a plain job"),
        ({}, "No meshes yet. They appear a few seconds after"),
        ({"is_over": True}, "No meshes were reported in this attempt: its driver attached none,"),
    ],
)
def test_where_nothing_was_reported_the_reason_is(portal, mportal, fields, words):
    portal.on(MESH, ok(meshes(at=None, **fields)))
    done = mportal("meshes", "42")
    assert (done.exit_code, done.stdout) == (1, "")
    assert words in done.stderr
