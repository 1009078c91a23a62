"""Looking at meshes through an admin: what is told of hosts, procs and actors, well and lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from monarch_client.runner import mesh_walk
from monarch_client.runner.frames import state_line
from monarch_client.runner.mesh_admin import AT_ONCE, MeshAdmin
from monarch_client.runner.mesh_sizes import fitting
from monarch_client.runner.mesh_walk import Walk
from tests.mesh_frames import dead, host, proc, tree
from tests.stand_in_admin import GONE, LATE, StandInAdmin

HOSTS = {
    "host<h0>@tls:127.0.0.10:22222": {"trainers<p0>@x": ["probe<a0>.trainers<p0>@x"]},
    "host<h1>@tls:127.0.0.11:22222": {"trainers<p1>@y": ["probe<a1>.trainers<p1>@y"]},
}
FIRST, SECOND = HOSTS
DEAD = "trainers<p1>@y"


@pytest.fixture
def stand_in() -> Iterator[StandInAdmin]:
    stand_in = StandInAdmin()
    stand_in.mesh(HOSTS)
    yield stand_in
    stand_in.close()


@pytest.fixture
def look(stand_in: StandInAdmin):
    """Look once more."""
    ranks = {"127.0.0.10": 0, "127.0.0.11": 1}
    walk = Walk(lambda address: next((ranks[each] for each in ranks if each in address), None))
    admin = MeshAdmin(stand_in.url, None)
    yield lambda: walk.look([admin])
    admin.close()


def states(tree: dict[str, Any]) -> list[Any]:
    return [
        (each["rank"], each["state"], [proc["state"] for proc in each["procs"]])
        for each in tree["hosts"]
    ]


def test_a_mesh_that_is_well_is_told_by_rank(look) -> None:
    tree = look()
    assert tree["answers"]
    assert states(tree) == [(0, "up", ["alive"]), (1, "up", ["alive"])]
    (actor,) = tree["hosts"][1]["procs"][0]["actors"]
    assert (actor["id"], actor["kind"], actor["state"]) == (
        "probe<a1>",
        "Probe",
        "running",
    )


def test_a_proc_is_dead_when_it_was_not_there_three_times(look, stand_in) -> None:
    look()
    stand_in.answers[DEAD] = GONE
    assert states(look())[1] == states(look())[1] == (1, "up", ["alive"])
    tree = look()
    assert states(tree)[1] == (1, "up", ["dead"])
    (lost,) = tree["hosts"][1]["procs"]
    assert f"GET /v1/{DEAD} at " in lost["why"]
    assert "404 not_found: timed out querying proc mesh agent" in lost["why"]
    # What it had done is still told.
    assert [actor["state"] for actor in lost["actors"]] == ["unknown"]
    # As long as it stays so, the first evidence stands.
    assert look()["hosts"][1]["procs"] == [lost]


def test_a_proc_that_was_gone_while_it_was_asked_is_not_dead(look, stand_in) -> None:
    look()
    before = stand_in.answers[DEAD]
    for _ in range(3):
        stand_in.answers[DEAD] = GONE
        assert states(look())[1] == (1, "up", ["alive"])
        stand_in.answers[DEAD] = before
        look()


def test_a_host_that_does_not_answer_is_unreachable_and_its_procs_are_unknown(
    look, stand_in
) -> None:
    look()
    stand_in.answers[SECOND] = LATE
    assert states(look())[1] == (1, "up", ["alive"])
    tree = look()
    assert states(tree) == [(0, "up", ["alive"]), (1, "unreachable", ["unknown"])]
    assert "504 gateway_timeout: no answer in 3 s" in tree["hosts"][1]["why"]


def test_a_poisoned_proc_shows_the_failure_of_its_actor(look, stand_in) -> None:
    reference = "probe<a1>.trainers<p1>@y"
    stand_in.node(
        DEAD,
        "Proc",
        [reference],
        is_poisoned=True,
        failed_actor_count=1,
        stopped_children=[reference],
    )
    error = "ValueError: bad number 7\n\nStack backtrace:\n  0: rust"
    stand_in.node(
        reference,
        "Actor",
        [],
        actor_status="failed: short",
        actor_type="t.Probe",
        failure_info={"error_message": error},
    )
    (poisoned,) = look()["hosts"][1]["procs"]
    assert (poisoned["state"], len(poisoned["actors"])) == ("poisoned", 1)
    failed = poisoned["actors"][0]
    assert (failed["state"], failed["why"]) == ("failed", "ValueError: bad number 7")


def test_monarchs_own_actors_are_left_out(look, stand_in) -> None:
    own = "proc_agent<x>.trainers<p1>@y"
    stand_in.node(DEAD, "Proc", [own], system_children=[own])
    assert look()["hosts"][1]["procs"][0]["actors"] == []
    assert own not in stand_in.asked


def test_an_admin_that_does_not_answer_is_told_as_such(look, stand_in) -> None:
    look()
    stand_in.answers["root"] = LATE
    # A driver that is about to end is not silent.
    assert look() is look() is None
    found = look()
    assert (found["answers"], found["hosts"]) == (False, [])
    assert "504 gateway_timeout" in found["why"]
    stand_in.close()
    assert "no answer in" in look()["why"]


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"[1]", b'{"children": 7}', b'{"properties": [], "error": 1}']
)
def test_odd_answers_harm_nothing(look, stand_in, content) -> None:
    for reference in [*HOSTS, DEAD, "probe<a0>.trainers<p0>@x"]:
        stand_in.answers[reference] = (200, content)
        look()
    stand_in.answers["root"] = (200, content)
    assert (look() or {"hosts": []})["hosts"] == []


def test_a_large_mesh_is_asked_a_few_questions_at_once_and_not_more_than_the_limit(
    stand_in, monkeypatch
) -> None:
    monkeypatch.setattr(mesh_walk, "MOST_QUESTIONS", 150)
    procs = {f"p<{n}>@z": [f"a<{n}>@z"] for n in range(100)}
    stand_in.mesh({"host<h0>@w": procs})
    admin = MeshAdmin(stand_in.url, None)
    (found,) = Walk(lambda _address: 0).look([admin])["hosts"]
    admin.close()
    assert len(found["procs"]) == 100
    assert len(stand_in.asked) == 151
    assert sum(proc["left_out"] for proc in found["procs"]) == 51
    assert stand_in.most_at_once <= AT_ONCE


def encode(content: dict[str, Any]) -> bytes:
    return state_line(0, "mesh", content)


def test_what_does_not_fit_is_counted_and_losses_stay() -> None:
    hosts = [host(rank, procs=[proc(f"p<{n}>") for n in range(8)]) for rank in range(300)]
    hosts[7]["procs"].append(dead())
    whole = {"answers": True, "why": "", "left_out": 0, "hosts": hosts}
    for most in (200_000, 50_000, 5_000):
        line = fitting(whole, encode, most)
        assert len(line) <= most
        told = json.loads(line)
        procs = [each for told_host in told["hosts"] for each in told_host["procs"]]
        assert [each["state"] for each in procs].count("dead") == 1
        left_out = sum(told_host["left_out"] for told_host in told["hosts"])
        if not told["left_out"]:
            assert len(procs) + left_out == 300 * 8 + 1
        assert len(told["hosts"]) + told["left_out"] == 300


def test_nothing_is_left_out_of_what_fits() -> None:
    whole = {"answers": True, "why": "", "left_out": 0, "hosts": tree(0)["hosts"]}
    assert json.loads(fitting(whole, encode))["hosts"] == whole["hosts"]
