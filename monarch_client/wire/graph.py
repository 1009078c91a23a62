"""The graph of a job: the jobs that it depends on, and those that depend on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.values import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphJob:
    """A job in a graph."""

    job_id: int
    name: str
    status: Annotated[str, Meta(description="Of a deleted job its last one; empty: unknown.")]
    deleted: bool = False
    array: Annotated[int | None, Meta(description="The array it is part of.")] = None
    array_name: str = ""
    ended_at: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A dependency: `job_id` starts after `needs`."""

    job_id: int
    needs: int
    after: Annotated[str, Meta(description="What `needs` has to do: success or end.")]
    state: Annotated[str, Meta(description="met, open, or broken: it can no longer be met.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraph:
    """All jobs that are connected with a job by dependencies."""

    job_id: int
    jobs: Annotated[list[GraphJob], Meta(description="By number.")] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    is_whole: Annotated[
        bool, Meta(description="False: there are more jobs, further away from this one.")
    ] = True
