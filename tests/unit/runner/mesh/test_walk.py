"""Looks at meshes through an admin: the states of hosts, procs and actors, healthy and lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.logs.mesh_frames import what_is_wrong_with_tree
from monarch_client.runner.mesh import walk as mesh_walk
from monarch_client.runner.mesh.admin import AT_ONCE, MeshAdmin
from monarch_client.runner.mesh.walk import Walk
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


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


RANKS = {"127.0.0.10": 0, "127.0.0.11": 1}


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Exited:
    """The nodes' reports on the processes of procs: all have exited, or those in `only`."""

    def __init__(self) -> None:
        self.only: set[tuple[int | None, str]] | None = None

    def __call__(self, rank: int | None, name: str) -> bool:
        return self.only is None or (rank, name) in self.only


@pytest.fixture
def exited() -> Exited:
    return Exited()


@pytest.fixture
def walk(exited: Exited, clock: Clock) -> Walk:
    def rank_of(address: str) -> int | None:
        return next((RANKS[each] for each in RANKS if each in address), None)

    return Walk(rank_of, exited, clock)


@pytest.fixture
def look(stand_in: StandInAdmin, walk: Walk, clock: Clock, monkeypatch):
    """Look once more, three seconds later."""
    # However slow the machine is.
    monkeypatch.setattr(mesh_walk, "MOST_S", 300.0)
    admin = MeshAdmin(stand_in.url, None)

    def look(after_s: float = 3.0) -> dict[str, Any] | None:
        clock.now += after_s
        return walk.look([admin])

    yield look
    admin.close()


def states(tree: dict[str, Any]) -> list[Any]:
    return [
        (each["rank"], each["state"], [proc["state"] for proc in each["procs"]])
        for each in tree["hosts"]
    ]


def test_a_healthy_mesh_is_reported_by_rank(look) -> None:
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
    # Its actors are still reported.
    assert [actor["state"] for actor in lost["actors"]] == ["unknown"]
    # While the state lasts, the first evidence is kept.
    assert look()["hosts"][1]["procs"] == [lost]


def test_a_proc_is_silent_until_its_process_has_exited(look, stand_in, exited) -> None:
    look()
    exited.only = {(0, "trainers<p1>"), (1, "trainers<p0>")}
    well, stand_in.answers[DEAD] = stand_in.answers[DEAD], GONE
    for _ in range(3):
        tree = look()
    assert states(tree)[1] == (1, "up", ["silent"])
    (silent,) = tree["hosts"][1]["procs"]
    assert silent["why"].endswith(
        "Its process has not exited: it may be stopped or too busy to answer."
    )
    assert [actor["state"] for actor in silent["actors"]] == ["unknown"]
    assert what_is_wrong_with_tree({**tree, "rank": 0}, 2) == ""
    exited.only.add((1, "trainers<p1>"))
    assert states(look())[1] == (1, "up", ["dead"])
    stand_in.answers[DEAD] = well
    assert states(look())[1] == (1, "up", ["alive"])


def test_a_proc_that_was_gone_while_it_was_queried_is_not_dead(look, stand_in) -> None:
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


def test_what_the_portal_would_refuse_is_not_reported(look, stand_in) -> None:
    reference = "probe<a1>.trainers<p1>@y"
    stand_in.node(DEAD, "Proc", [reference], is_poisoned=True, failed_actor_count=10**4000)
    for messages in (True, 2**70, -1, "7"):
        stand_in.node(reference, "Actor", [], messages_processed=messages)
        found = {**look(), "rank": 0}
        assert what_is_wrong_with_tree(found, 2) == ""


def test_monarchs_own_actors_are_left_out(look, stand_in) -> None:
    own = "proc_agent<x>.trainers<p1>@y"
    stand_in.node(DEAD, "Proc", [own], system_children=[own])
    assert look()["hosts"][1]["procs"][0]["actors"] == []
    assert own not in stand_in.requested


def test_an_admin_that_does_not_answer_is_reported_as_such(look, stand_in) -> None:
    look()
    stand_in.answers["root"] = LATE
    # A driver that is about to end is not silent.
    assert look() is look() is None
    found = look()
    assert (found["answers"], found["hosts"]) == (False, [])
    assert "504 gateway_timeout" in found["why"]
    stand_in.close()
    assert "ConnectionRefusedError" in look()["why"]


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"[1]", b'{"children": 7}', b'{"properties": [], "error": 1}']
)
def test_odd_answers_harm_nothing(look, stand_in, content) -> None:
    for reference in [*HOSTS, DEAD, "probe<a0>.trainers<p0>@x"]:
        stand_in.answers[reference] = (200, content)
        look()
    stand_in.answers["root"] = (200, content)
    assert (look() or {"hosts": []})["hosts"] == []


def test_three_misses_in_a_moment_make_no_proc_dead(look, stand_in) -> None:
    look()
    stand_in.answers[DEAD] = GONE
    for _ in range(4):
        assert states(look(1.0))[1] == (1, "up", ["alive"])
    assert states(look(1.0))[1] == (1, "up", ["dead"])


def test_once_monarch_has_reported_a_loss_one_look_asks_twice_and_is_believed(
    look, walk, stand_in, clock
) -> None:
    look()
    stand_in.answers[DEAD] = GONE
    walk.misses.trust_reported_loss()
    stand_in.requested.clear()
    assert states(look(0.5))[1] == (1, "up", ["dead"])
    assert stand_in.requested.count(DEAD) == 2
    # A few seconds on, a report is old.
    other = "trainers<p0>@x"
    stand_in.answers[other] = GONE
    assert states(look(30.0))[0] == (0, "up", ["alive"])


def test_a_dead_proc_is_found_where_not_all_can_be_queried_in_one_round(
    look, stand_in, monkeypatch
) -> None:
    monkeypatch.setattr(mesh_walk, "MOST_QUESTIONS", 20)
    procs = {f"p<{n}>@z": [f"a<{n}>@z"] for n in range(60)}
    stand_in.mesh({FIRST: procs})
    stand_in.answers["p<59>@z"] = GONE

    def reported() -> str:
        return look()["hosts"][0]["procs"][59]["state"]

    assert reported() == "unknown"
    assert "dead" in [reported() for _ in range(10)]
    # The state lasts although the proc is not queried in every look.
    assert {reported() for _ in range(10)} == {"dead"}


def test_all_are_queried_in_turn_where_not_all_can_be_in_one_round(
    look, stand_in, monkeypatch
) -> None:
    monkeypatch.setattr(mesh_walk, "MOST_QUESTIONS", 20)
    hosts = {
        f"host<h{h}>@t{h}": {f"p<{h}.{n}>@z": [f"a<{h}.{n}>@z"] for n in range(5)}
        for h in range(30)
    }
    stand_in.mesh(hosts)
    for _ in range(80):
        look()
    procs = {proc for host in hosts.values() for proc in host}
    actors = {actor for host in hosts.values() for each in host.values() for actor in each}
    assert {*hosts, *procs, *actors} - set(stand_in.requested) == set()


def test_a_large_mesh_gets_a_few_queries_at_once_and_not_more_than_the_limit(
    stand_in, monkeypatch
) -> None:
    monkeypatch.setattr(mesh_walk, "MOST_S", 300.0)
    monkeypatch.setattr(mesh_walk, "MOST_QUESTIONS", 150)
    procs = {f"p<{n}>@z": [f"a<{n}>@z"] for n in range(100)}
    stand_in.mesh({"host<h0>@w": procs})
    admin = MeshAdmin(stand_in.url, None)
    (found,) = Walk(lambda _address: 0, lambda *_proc: True).look([admin])["hosts"]
    admin.close()
    assert len(found["procs"]) == 100
    assert len(stand_in.requested) == 151
    assert sum(proc["left_out"] for proc in found["procs"]) == 51
    assert stand_in.most_at_once <= AT_ONCE
