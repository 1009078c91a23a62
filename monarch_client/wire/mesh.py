"""The meshes of a job: hosts, their procs, the actors in these, and failures.

`state` is "unknown" where the present state is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.values import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshActor:
    """An actor of a proc."""

    id: str
    kind: Annotated[str, Meta(description="Its class.")]
    state: Annotated[str, Meta(description="running, failed, stopped or unknown.")]
    told: Annotated[str, Meta(description="The state that was reported last.")]
    doing: Annotated[str, Meta(description="In Monarch's own words.")]
    messages: Annotated[int, Meta(description="The number that it has handled.")]
    why: Annotated[str, Meta(description="Its failure.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshProc:
    """A process of a mesh."""

    id: str
    state: Annotated[str, Meta(description="alive, dead, poisoned or unknown.")]
    told: str
    why: Annotated[str, Meta(description="What was requested, and what answered.")]
    left_out: Annotated[int, Meta(description="Actors that are not listed.")]
    actors: list[MeshActor]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshHost:
    """A host of a mesh, or, without a rank, the driver's own side."""

    id: str
    rank: int | None
    mesh: str
    state: Annotated[str, Meta(description="up, ended, unreachable or unknown.")]
    told: str
    why: str
    left_out: Annotated[int, Meta(description="Procs that are not listed.")]
    procs: list[MeshProc]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshLine:
    """A line of the log."""

    number: int
    stream: str
    at: Moment
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshChange:
    """A failure or a recovery."""

    at: Moment
    rank: int | None
    host: Annotated[str, Meta(description="Empty: all of them.")]
    proc: Annotated[str, Meta(description="Empty: the host.")]
    actor: Annotated[str, Meta(description="Empty: the proc or host.")]
    state: str
    was: str
    why: str
    is_failure: bool
    lines: Annotated[
        list[MeshLine],
        Meta(description="The last lines of its rank before it, of the latest losses."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """The meshes of one attempt."""

    attempt: Annotated[int | None, Meta(description="Its number.")]
    is_monarch: Annotated[bool, Meta(description="Else there are no meshes.")]
    is_over: bool
    is_final: Annotated[
        bool,
        Meta(description="It is over, and no other attempt will be shown instead."),
    ]
    is_known: Annotated[
        bool, Meta(description="Whether the states are the present ones, or those of the end.")
    ]
    at: Annotated[Moment | None, Meta(description="When the last report came.")]
    why: Annotated[str, Meta(description="Why the states are not known.")]
    left_out: Annotated[int, Meta(description="Hosts that are not listed.")]
    hosts: list[MeshHost]
    changes: Annotated[list[MeshChange], Meta(description="Newest first.")]
