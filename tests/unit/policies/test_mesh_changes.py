"""Failures and recoveries between two trees of a mesh."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.policies.mesh_changes import MOST_FIRST, MOST_LAST, changes_between, with_changes
from tests.mesh_frames import actor, dead, host, proc, tree

WELL = tree(0)


def changed(before: Any, after: Any) -> list[tuple[str, str, str, str, str]]:
    return [
        (each["host"], each["proc"], each["actor"], each["was"], each["state"])
        for each in changes_between(before, after)
    ]


def test_a_mesh_that_is_well_has_no_history() -> None:
    assert changed(None, WELL) == []
    assert changed(WELL, tree(5, host(0, procs=[proc(actors=[actor(messages=9)])]))) == []


def test_a_dead_proc_is_reported_once_with_its_rank_and_evidence() -> None:
    after = tree(5, host(0), host(1, procs=[dead()]))
    (change,) = changes_between(WELL, after)
    assert (change["rank"], change["proc"], change["was"]) == (1, "trainers<p1>", "alive")
    assert "404 not_found" in change["why"]
    assert changed(after, tree(10, host(0), host(1, procs=[dead()]))) == []


@pytest.mark.parametrize(
    ("sick", "well", "expected"),
    [
        (host(0, state="unreachable"), host(0), ("host<h0>", "", "")),
        (host(0, procs=[proc(state="poisoned")]), host(0), ("host<h0>", "trainers<p1>", "")),
        (
            host(0, procs=[proc(actors=[actor(state="failed")])]),
            host(0),
            ("host<h0>", "trainers<p1>", "probe<a1>"),
        ),
    ],
)
def test_a_failure_and_its_recovery_are_reported_each(sick, well, expected) -> None:
    (begins,) = changed(tree(0, well), tree(5, sick))
    (ends,) = changed(tree(5, sick), tree(10, well))
    assert begins[:3] == ends[:3] == expected
    assert begins[3:] == ends[:2:-1][:2]


def test_what_was_lost_from_the_beginning_is_reported_as_well() -> None:
    assert changed(None, tree(0, host(0, procs=[dead()]))) == [
        ("host<h0>", "trainers<p1>", "", "well", "dead")
    ]


def test_a_mesh_that_was_stopped_has_not_failed() -> None:
    assert changed(WELL, tree(5, host(0, procs=[]))) == []
    assert changed(tree(5, host(0, procs=[dead()])), tree(10, host(0, procs=[]))) == []


def test_an_unknown_state_is_neither_failure_nor_recovery() -> None:
    lost = tree(0, host(0, procs=[dead()]))
    unknown = tree(5, host(0, procs=[proc(state="unknown")]))
    assert changed(lost, unknown) == changed(WELL, unknown) == []


def test_a_loss_that_was_out_of_sight_for_a_while_is_no_second_one() -> None:
    lost = tree(0, host(0, procs=[dead()]))
    unknown = tree(5, host(0, procs=[proc(state="unknown")]))
    history = changes_between(WELL, lost)
    assert changes_between(lost, unknown, history) == []
    assert changes_between(unknown, lost, history) == []
    (change,) = changes_between(unknown, WELL, history)
    assert (change["was"], change["state"]) == ("dead", "alive")
    # What is well again may fail once more.
    (change,) = changes_between(unknown, lost, [*history, change])
    assert change["state"] == "dead"


def test_a_driver_that_falls_silent_and_answers_again_is_reported() -> None:
    silent = tree(5, answers=False, why="no answer in 6.0 s")
    assert changed(WELL, silent) == [("", "", "", "well", "silent")]
    assert changed(silent, silent) == []
    assert changed(silent, WELL) == [("", "", "", "silent", "well")]


def test_of_a_long_history_the_beginning_and_the_latest_stay() -> None:
    kept: list[dict[str, Any]] = []
    for number in range(1000):
        kept = with_changes(kept, [{"number": number}])
    numbers = [each["number"] for each in kept]
    assert len(numbers) == MOST_FIRST + MOST_LAST
    assert numbers[:MOST_FIRST] == list(range(MOST_FIRST))
    assert numbers[-1] == 999
