"""Fit a mesh tree into one frame: count healthy nodes instead of listing them, details first.

Lost nodes stay longest; nodes that are only counted are healthy or of unknown state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.mesh_states import HEALTHY, UNKNOWN

if TYPE_CHECKING:
    from typing import Any, Callable

    Tree = dict[str, Any]

# Samples of hosts are in the same posts.
MOST_BYTES = 96 * 1024
_SHORT_WHY = 200
_NOT_LOST = HEALTHY | {UNKNOWN}


def fitting(tree: Tree, encode: Callable[[Tree], bytes], most: int = MOST_BYTES) -> bytes:
    """Return `tree` encoded by `encode`, shortened until it has at most `most` bytes."""
    line = encode(tree)
    for smaller in _STEPS:
        if len(line) <= most:
            return line
        tree = smaller(tree)
        line = encode(tree)
    while len(line) > most and tree["hosts"]:
        half = len(tree["hosts"]) // 2
        left_out = tree["left_out"] + len(tree["hosts"]) - half
        tree = {**tree, "hosts": tree["hosts"][:half], "left_out": left_out}
        line = encode(tree)
    return line


def _without(node: Tree, name: str, states: frozenset[str] = HEALTHY) -> Tree:
    """Return `node` without the children whose whole subtrees are in `states`."""
    kept = [child for child in node[name] if not _are_all_in(states, child)]
    return {**node, name: kept, "left_out": node["left_out"] + len(node[name]) - len(kept)}


def _are_all_in(states: frozenset[str], node: Tree) -> bool:
    below = [*node.get("procs", ()), *node.get("actors", ())]
    return node["state"] in states and all(_are_all_in(states, child) for child in below)


def _without_actors(tree: Tree) -> Tree:
    return _with_procs(tree, lambda proc: _without(proc, "actors"))


def _without_procs(tree: Tree) -> Tree:
    return {**tree, "hosts": [_without(host, "procs") for host in tree["hosts"]]}


def _with_short_texts(tree: Tree) -> Tree:
    def shorter(node: Tree) -> Tree:
        return {**node, "why": node["why"][:_SHORT_WHY]}

    def shorter_proc(proc: Tree) -> Tree:
        return {**shorter(proc), "actors": [shorter(actor) for actor in proc["actors"]]}

    hosts = [shorter(host) for host in tree["hosts"]]
    return _with_procs({**tree, "hosts": hosts}, shorter_proc)


def _without_hosts(tree: Tree) -> Tree:
    return _without(tree, "hosts")


def _without_unknown(tree: Tree) -> Tree:
    """Drop the children of lost hosts and dead procs, which have no state of their own."""
    tree = _with_procs(tree, lambda proc: _without(proc, "actors", _NOT_LOST))
    hosts = [_without(host, "procs", _NOT_LOST) for host in tree["hosts"]]
    return _without({**tree, "hosts": hosts}, "hosts", _NOT_LOST)


def _with_procs(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    hosts = [{**host, "procs": [change(proc) for proc in host["procs"]]} for host in tree["hosts"]]
    return {**tree, "hosts": hosts}


_STEPS = (_without_actors, _without_procs, _with_short_texts, _without_hosts, _without_unknown)
