"""Trees of meshes, frames of kind `mesh`: checked strictly, and kept in a shape of our own.

A tree is `{"hosts": [...]}`; a host has `procs`, a proc has `actors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jobs.logs.lines import storable
from monarch_client.runner.vocabulary.frames import MESH
from monarch_client.runner.vocabulary.limits import MAX_MESH_COUNT, MAX_MESH_NAME_CHARS
from monarch_client.runner.vocabulary.mesh_states import ACTOR_STATES, HOST_STATES, PROC_STATES

# Of hosts, procs and actors together; and of characters in all their texts.
MOST_NODES = 8192
MOST_CHARS = 256 * 1024
_MOST_WHY_CHARS = 4000

Mask = Callable[[str], str]
Name = Annotated[str, Meta(max_length=MAX_MESH_NAME_CHARS)]
Why = Annotated[str, Meta(max_length=_MOST_WHY_CHARS)]
Count = Annotated[int, Meta(ge=0, le=MAX_MESH_COUNT)]
HostState = Annotated[str, Meta(pattern=rf"\A(?:{'|'.join(HOST_STATES)})\Z")]
ProcState = Annotated[str, Meta(pattern=rf"\A(?:{'|'.join(PROC_STATES)})\Z")]
ActorState = Annotated[str, Meta(pattern=rf"\A(?:{'|'.join(ACTOR_STATES)})\Z")]


class Actor(Struct):
    """An actor of a proc."""

    id: Name
    kind: Name
    state: ActorState
    doing: Name
    messages: Count
    why: Why


class Proc(Struct):
    """A proc of a host."""

    id: Name
    state: ProcState
    why: Why
    left_out: Count
    actors: list[Actor]


class Host(Struct):
    """A host of a tree."""

    id: Name
    state: HostState
    why: Why
    left_out: Count
    procs: list[Proc]
    rank: Count | None = None


class Tree(Struct):
    """A tree of the hosts of an attempt."""

    answers: bool
    why: Why
    left_out: Count
    hosts: list[Host]


def what_is_wrong_with_tree(frame: dict[str, Any], num_ranks: int) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Rank and time were checked before."""
    if frame["rank"] != 0:
        return f"only rank 0 may send it ({MESH})."
    try:
        tree = msgspec.convert(frame, Tree)
    except ValueError as error:
        return f"it is not what a frame of kind {MESH} may hold: {error}."
    if any((host.rank or 0) >= num_ranks for host in tree.hosts):
        return f"one of its hosts has a rank that is not one of the job's {num_ranks}."
    chars = 0
    for number, node in enumerate(_nodes(tree), 1):
        chars += sum(len(value) for value in msgspec.structs.astuple(node) if type(value) is str)
        if number > MOST_NODES or chars > MOST_CHARS:
            return f"it has more than {MOST_NODES} nodes or {MOST_CHARS} characters."
    return ""


def _nodes(tree: Tree) -> Iterator[Host | Proc | Actor]:
    for host in tree.hosts:
        yield host
        for proc in host.procs:
            yield proc
            yield from proc.actors


def kept_of(frame: dict[str, Any], mask: Mask) -> dict[str, Any]:
    """Return the stored form of a valid tree, its texts masked: with every key, and no other."""
    kept: dict[str, Any] = _masked("", msgspec.to_builtins(msgspec.convert(frame, Tree)), mask)
    return kept


def _masked(name: str, value: Any, mask: Mask) -> Any:
    if type(value) is dict:
        return {key: _masked(key, each, mask) for key, each in value.items()}
    if type(value) is list:
        return [_masked(name, each, mask) for each in value]
    if type(value) is not str or name == "state":
        return value
    return storable(mask(value), _MOST_WHY_CHARS if name == "why" else MAX_MESH_NAME_CHARS)
