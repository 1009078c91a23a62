"""mportal stacks: ask, wait for the answer, print it; or what was dumped before."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.rest.fake_portal import MOMENT, ok, problem

STACKS = "/projects/rl/jobs/42/stacks"
PROCESS = {"pid": 7, "command": "python a.py", "text": "Process 7\n\nThread 7 (idle)", "why": ""}


def dump(state: str = "done", **fields: Any) -> dict[str, Any]:
    return {
        "id": 5,
        "rank": 1,
        "pid": None,
        "asked_by": "mia",
        "asked_at": MOMENT,
        "ended_at": None,
        "state": state,
        "why": "",
        "left_out": 0,
        "processes": [PROCESS] if state == "done" else [],
        **fields,
    }


def stacks(*dumps: dict[str, Any]) -> Any:
    more = {"attempt": 1, "is_over": False, "is_final": False, "can_ask": True, "ranks": 2}
    return ok({**more, "dumps": list(dumps)})


def test_it_asks_waits_and_prints_the_stacks(portal, mportal) -> None:
    portal.on(f"POST {STACKS}", ok(dump("asked"), 202))
    portal.on(f"GET {STACKS}", stacks(dump("asked")), stacks(dump()))
    done = mportal("stacks", "42", "--rank", "1", "--pid", "7")
    assert done.exit_code == 0
    assert done.stdout == "Process 7\n\nThread 7 (idle)\n\n"
    (requested,) = portal.seen(f"POST {STACKS}")
    assert json.loads(requested.content) == {"rank": 1, "pid": 7}
    assert portal.seen(f"GET {STACKS}")[0].url.params["id"] == "5"
    assert portal.pauses == [1.0, 1.0]


def test_a_failure_is_said_and_is_the_exit_code(portal, mportal) -> None:
    portal.on(f"POST {STACKS}", ok(dump("asked"), 202))
    reported = {**PROCESS, "text": "", "why": "py-spy may not read this process"}
    portal.on(f"GET {STACKS}", stacks(dump("failed", why="No py-spy", processes=[reported])))
    done = mportal("stacks", "42")
    assert done.exit_code == 1
    assert "No py-spy" in done.stderr
    assert "py-spy may not read" in done.stdout


def test_an_answer_that_never_comes_is_not_waited_for_without_end(portal, mportal) -> None:
    portal.on(f"POST {STACKS}", ok(dump("asked"), 202))
    portal.on(f"GET {STACKS}", stacks(dump("asked")))
    done = mportal("stacks", "42")
    assert done.exit_code == 124
    assert "No answer yet" in done.stderr


def test_what_the_portal_refuses_is_said(portal, mportal) -> None:
    portal.on(f"POST {STACKS}", problem(409, "conflict", "Node 0 is being asked already."))
    done = mportal("stacks", "42")
    assert done.exit_code == 125
    assert "Node 0 is being asked already." in done.stderr


def test_what_was_dumped_before_is_listed_and_shown_without_asking(portal, mportal) -> None:
    portal.on(f"GET {STACKS}", stacks(dump(), dump("failed", id=4, pid=9, why="gone")))
    head, first, second = mportal("stacks", "42", "--list").stdout.splitlines()
    assert head.split() == ["ID", "NODE", "PROCESS", "STATE", "ASKED", "BY", "WHY"]
    assert first.split()[:4] == ["5", "1", "all", "done"]
    assert second.split()[-1] == "gone"
    assert "Thread 7 (idle)" in mportal("stacks", "42", "--show", "5").stdout
    assert json.loads(mportal("stacks", "42", "--show", "5", "-o", "json").stdout)["id"] == 5


def test_a_dump_that_there_is_not_is_said(portal, mportal) -> None:
    portal.on(f"GET {STACKS}", stacks())
    done = mportal("stacks", "42", "--show", "9")
    assert done.exit_code == 1
    assert "no stack dump 9" in done.stderr


def test_the_stacks_of_all_ranks_are_printed_once_with_their_ranks(portal, mportal) -> None:
    dumps = [dump(id=5 + rank, rank=rank) for rank in range(3)]
    more = {"attempt": 1, "is_over": False, "is_final": False, "can_ask": True, "ranks": 3}
    more["asked_together"] = [5, 6, 7]
    waiting = ok({**more, "dumps": [dumps[0], {**dumps[1], "state": "asked"}], "groups": []})
    groups = [
        {"ranks": [0, 2], "processes": 2, "where": "step (a.py:4)", "frames": ["step (a.py:4)"]},
        {"ranks": [1], "processes": 1, "where": "read (b.py:2)", "frames": ["read (b.py:2)"]},
    ]
    portal.on(f"POST {STACKS}/all", waiting)
    portal.on(f"GET {STACKS}", waiting, ok({**more, "dumps": dumps, "groups": groups}))
    done = mportal("stacks", "42", "--all-ranks")
    assert done.exit_code == 0, done.output
    assert "2 nodes in step (a.py:4)  (0, 2)\n    step (a.py:4)" in done.stdout
    assert "node 1 in read (b.py:2)\n" in done.stdout


def test_all_ranks_of_a_job_of_one_node_prints_its_dump(portal, mportal) -> None:
    one = {"attempt": 1, "is_over": False, "is_final": False, "can_ask": True, "ranks": 1}
    waiting = ok({**one, "dumps": [dump("asked", rank=0), dump("failed", id=4, rank=0)]}, 202)
    portal.on(f"POST {STACKS}/all", waiting)
    portal.on(f"GET {STACKS}", ok({**one, "dumps": [dump(rank=0)]}))
    done = mportal("stacks", "42", "--all-ranks")
    assert done.exit_code == 0, done.output
    assert done.stdout == "Process 7\n\nThread 7 (idle)\n\n"
    assert portal.seen(f"GET {STACKS}")[0].url.params["id"] == "5"
    as_json = json.loads(mportal("stacks", "42", "--all-ranks", "-o", "json").stdout)
    assert [each["state"] for each in as_json["dumps"]] == ["done", "failed"]
