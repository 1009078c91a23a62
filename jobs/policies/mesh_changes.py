"""Failures and recoveries in a mesh, found by comparing two trees. Pure.

A tree is what `jobs.logs.mesh_frames` keeps. A change is `{"at", "rank", "host", "proc", "actor",
"state", "was", "why", "line"}`; "" for `proc` and `actor` where it is about what holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monarch_client.runner.vocabulary.mesh_states import FAILING, SILENT, UNKNOWN

WELL = "well"
# Of one attempt: the first ones, which mostly say how it began, and the latest.
MOST_FIRST, MOST_LAST = 50, 150
MOST_WHY_CHARS = 1000

Tree = Mapping[str, Any]
Change = dict[str, Any]
_Key = tuple[str, str, str]


def changes_between(
    before: Tree | None, after: Tree, history: Iterable[Change] = ()
) -> list[Change]:
    """Return what began to fail from one tree to the next, and what fails no longer.

    A mesh that was stopped is not in the tree and has not failed. A node that was unknown meanwhile
    is compared with the last state that `history`, the earlier changes, has of it.
    """
    if not after["answers"]:
        was_silent = before is not None and not before["answers"]
        return [] if was_silent else [_change(("", "", ""), WELL, after, None, state=SILENT)]
    known = {key: node["state"] for key, node, _ in _nodes_of(before)} if before else {}
    last = {(each["host"], each["proc"], each["actor"]): each["state"] for each in history}
    found = []
    if before is not None and not before["answers"]:
        found.append(_change(("", "", ""), SILENT, after, None, state=WELL))
    for key, node, rank in _nodes_of(after):
        was, state = known.get(key, WELL), node["state"]
        if was == UNKNOWN:
            was = last.get(key, UNKNOWN)
        if state != was and (state in FAILING or (was in FAILING and state != UNKNOWN)):
            found.append(_change(key, was, node, rank, state=state))
    return found


def with_changes(kept: list[Change], new: list[Change]) -> list[Change]:
    """Return all changes, as long as they are not many; else the first and the latest."""
    both = [*kept, *new]
    if len(both) <= MOST_FIRST + MOST_LAST:
        return both
    return [*both[:MOST_FIRST], *both[-MOST_LAST:]]


def _nodes_of(tree: Tree) -> Iterator[tuple[_Key, Mapping[str, Any], int | None]]:
    for host in tree["hosts"]:
        yield (host["id"], "", ""), host, host["rank"]
        for proc in host["procs"]:
            yield (host["id"], proc["id"], ""), proc, host["rank"]
            for actor in proc["actors"]:
                yield (host["id"], proc["id"], actor["id"]), actor, host["rank"]


def _change(
    key: _Key, was: str, node: Mapping[str, Any], rank: int | None, *, state: str
) -> Change:
    host, proc, actor = key
    return {
        "rank": rank,
        "host": host,
        "proc": proc,
        "actor": actor,
        "state": state,
        "was": was,
        "why": node["why"][:MOST_WHY_CHARS],
    }
