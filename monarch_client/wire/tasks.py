"""The task contexts of a job: tasks by name, actors, objects of each host, and failures.

A driver writes a `ContextSummary`; the runner of its node sends it, shortened where it is long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import Moment

MOST_COUNTED = 2**53
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_COUNTED)]
# A limit also refuses infinity, which JSON cannot hold.
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=MOST_COUNTED)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """The tasks of one name, or the calls of one method of a class of actors."""

    name: Annotated[str, Meta(description='"": all further names.')]
    function: Annotated[
        str, Meta(description='The function of tasks with names of their own. "": `name` is it.')
    ] = ""
    pending: Count
    running: Count
    finished: Count
    failed: Count
    cancelled: Count
    mean_seconds: Annotated[
        Seconds | None, Meta(description="Of those that ran. Null: none has ended.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextActor:
    """An actor of a task context."""

    name: Annotated[str, Meta(description='"": it has none.')]
    kind: Annotated[str, Meta(description="Its class.")]
    state: Annotated[str, Meta(description="pending, alive, dead or ended.")]
    host: Annotated[str, Meta(description='"": it has not started.')]
    pid: Count | None
    calls: Annotated[Count, Meta(description="Calls that have ended.")]
    why: Annotated[str, Meta(description="Of a dead one.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextHost:
    """A host of a task context; the driver of a mesh is one more."""

    name: str
    processes: Annotated[Count, Meta(description="Of tasks and actors.")]
    objects: Annotated[Count, Meta(description="Large objects in its store, without copies.")]
    bytes: Annotated[Count, Meta(description="Of these objects.")]
    spilled: Annotated[
        Count | None, Meta(description="Bytes on disk. Null: known to its agent alone.")
    ]
    limit: Annotated[Count | None, Meta(description="Bytes of memory that its store may take.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailure:
    """A task, or a call of an actor, that failed."""

    name: str
    host: str
    at: Moment
    error: str
    trace: Annotated[str, Meta(description="The end of its traceback.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSummary:
    """The state of one task context."""

    name: Annotated[str, Meta(description="Of the context within its node.")] = ""
    pid: Annotated[Count, Meta(description="Of the driver.")]
    machine: Annotated[
        str, Meta(description='Of a driver outside of the job. "": it is on the node.')
    ] = ""
    is_open: bool
    objects: Annotated[
        Count, Meta(description="Objects that references keep, with results that are pending.")
    ]
    tasks: list[TaskCount]
    tasks_left_out: Count = 0
    actors: list[ContextActor]
    actors_left_out: Count = 0
    hosts: list[ContextHost]
    hosts_left_out: Count = 0
    failures: Annotated[list[TaskFailure], Meta(description="The newest first.")]
    failures_left_out: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext(ContextSummary):
    """A task context as it was reported last."""

    rank: Annotated[int, Meta(description="Of the node of its driver.")]
    at: Annotated[Moment, Meta(description="Of the report.")]
    is_silent: Annotated[
        bool, Meta(description="It is open, and no report came for a minute although one was due.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContexts:
    """The task contexts of one attempt: by rank, the newest of each first."""

    attempt: Annotated[int | None, Meta(description="Its number.")]
    is_over: bool
    is_final: Annotated[
        bool, Meta(description="It is over, and no other attempt will be shown instead.")
    ]
    contexts: list[TaskContext]
    left_out: Annotated[Count, Meta(description="Contexts that are not listed.")]
