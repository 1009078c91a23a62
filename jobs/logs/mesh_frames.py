"""Trees of meshes, frames of kind `mesh`: checked strictly, and kept in a shape of our own.

A tree is `{"hosts": [...]}`; a host has `procs`, a proc has `actors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobs.logs.lines import storable
from monarch_client.runner.vocabulary.frames import MESH
from monarch_client.runner.vocabulary.limits import MAX_MESH_COUNT, MAX_MESH_NAME_CHARS
from monarch_client.runner.vocabulary.mesh_states import ACTOR_STATES, HOST_STATES, PROC_STATES

# Of hosts, procs and actors together; and of characters in all their texts.
MOST_NODES = 8192
MOST_CHARS = 256 * 1024
_MOST_WHY_CHARS = 4000

_Check = Callable[[Any], bool]
Mask = Callable[[str], str]


def _name(value: object) -> bool:
    return type(value) is str and len(value) <= MAX_MESH_NAME_CHARS


def _why(value: object) -> bool:
    return type(value) is str and len(value) <= _MOST_WHY_CHARS


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_MESH_COUNT


def _state(*states: str) -> _Check:
    return lambda value: type(value) is str and value in states


def _rank(value: object) -> bool:
    return value is None or _count(value)


# Of each level: what a node must have, and what its children are called.
_LEVELS: tuple[tuple[str, dict[str, _Check]], ...] = (
    (
        "hosts",
        {
            "id": _name,
            "rank": _rank,
            "state": _state(*HOST_STATES),
            "why": _why,
            "left_out": _count,
        },
    ),
    ("procs", {"id": _name, "state": _state(*PROC_STATES), "why": _why, "left_out": _count}),
    (
        "actors",
        {
            "id": _name,
            "kind": _name,
            "state": _state(*ACTOR_STATES),
            "doing": _name,
            "messages": _count,
            "why": _why,
        },
    ),
)
_TEXTS = {"id": MAX_MESH_NAME_CHARS, "kind": MAX_MESH_NAME_CHARS, "doing": MAX_MESH_NAME_CHARS}


def what_is_wrong_with_tree(frame: dict[str, Any], num_ranks: int) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Rank and time were checked before."""
    if frame["rank"] != 0:
        return f"only rank 0 may send it ({MESH})."
    if type(frame.get("answers")) is not bool or not _why(frame.get("why")):
        return "its answers or its why is not what a frame of kind mesh may hold."
    if not _count(frame.get("left_out")):
        return "its left_out is not a number."
    chars = 0
    for number, (level, node) in enumerate(_nodes(frame, 0), 1):
        wrong = _what_is_wrong_with_node(level, node, num_ranks)
        if wrong:
            return wrong
        chars += sum(len(value) for value in node.values() if type(value) is str)
        if number > MOST_NODES or chars > MOST_CHARS:
            return f"it has more than {MOST_NODES} nodes or {MOST_CHARS} characters."
    return ""


def _what_is_wrong_with_node(level: int, node: dict[str, Any], num_ranks: int) -> str:
    if level < 0:
        return "its hosts, procs or actors are not lists of objects."
    name, checks = _LEVELS[level]
    wrong = next((field for field, check in checks.items() if not check(node.get(field))), "")
    if wrong:
        return f"the {wrong} of one of its {name} is not sound."
    if name == "hosts" and (node["rank"] or 0) >= num_ranks:
        return f"one of its hosts has a rank that is not one of the job's {num_ranks}."
    return ""


def _nodes(parent: dict[str, Any], level: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield every node below `parent` with its level; (-1, {}) for a value that is no node."""
    if level == len(_LEVELS):
        return
    children = parent.get(_LEVELS[level][0])
    if type(children) is not list:
        yield -1, {}
        return
    for child in children:
        if type(child) is not dict:
            yield -1, {}
            return
        yield level, child
        yield from _nodes(child, level + 1)


def kept_of(frame: dict[str, Any], mask: Mask) -> dict[str, Any]:
    """Return the stored form of a valid tree, its texts masked: with every key, and no other."""
    return {
        "answers": frame["answers"],
        "why": storable(mask(frame["why"]), _MOST_WHY_CHARS),
        "left_out": frame["left_out"],
        "hosts": [_kept(host, 0, mask) for host in frame["hosts"]],
    }


def _kept(node: dict[str, Any], level: int, mask: Mask) -> dict[str, Any]:
    kept = {name: _kept_value(node[name], name, mask) for name in _LEVELS[level][1]}
    if level + 1 < len(_LEVELS):
        name = _LEVELS[level + 1][0]
        kept[name] = [_kept(child, level + 1, mask) for child in node[name]]
    return kept


def _kept_value(value: Any, name: str, mask: Mask) -> Any:
    if type(value) is not str:
        return value
    return storable(mask(value), _TEXTS.get(name, _MOST_WHY_CHARS))
