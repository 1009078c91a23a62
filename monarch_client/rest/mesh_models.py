"""The meshes of a job as values: hosts, their procs, the actors in these, and what failed when.

`state` is "unknown" where nobody knows how something is now; `told` is what was last told of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class MeshActor:
    """An actor of a proc; `why`: its failure."""

    id: str
    kind: str
    state: str
    told: str
    doing: str
    messages: int
    why: str


@dataclass(frozen=True)
class MeshProc:
    """A process; `left_out`: how many of its actors are not listed."""

    id: str
    state: str
    told: str
    why: str
    left_out: int
    actors: list[MeshActor]


@dataclass(frozen=True)
class MeshHost:
    """A host, or without a rank the driver's own side; `left_out`: procs that are not listed."""

    id: str
    rank: int | None
    mesh: str
    state: str
    told: str
    why: str
    left_out: int
    procs: list[MeshProc]


@dataclass(frozen=True)
class MeshLine:
    """A line of the log."""

    number: int
    stream: str
    at: datetime
    text: str


@dataclass(frozen=True)
class MeshChange:
    """Something began to fail, or fails no longer; `lines`: the last of its rank by then."""

    at: datetime
    rank: int | None
    host: str
    proc: str
    actor: str
    state: str
    was: str
    why: str
    is_failure: bool
    lines: list[MeshLine]


@dataclass(frozen=True)
class Meshes:
    """The meshes of one attempt, last told `at`. `changes`: newest first.

    `is_known`: the states are those of now, or of the end; else `why` says why not.
    """

    attempt: int | None
    is_monarch: bool
    is_over: bool
    is_final: bool
    is_known: bool
    at: datetime | None
    why: str
    left_out: int
    hosts: list[MeshHost]
    changes: list[MeshChange]
