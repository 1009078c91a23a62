"""The timeline of the queue: what has machines from when until when, and what starts next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.values import Moment, machines_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineJob:
    """An attempt with its machines, or a queued job with its expected start.

    A job of a project that you do not see has neither number nor names.
    """

    kind: Annotated[str, Meta(description="ended, running or waiting.")]
    job_id: int | None
    project: str
    name: str
    owner: str
    status: str
    attempt: int | None
    num_nodes: int
    gpu_type: str
    gpu_count: int
    begin: Annotated[Moment | None, Meta(description="Null: the start is unknown.")]
    begin_basis: Annotated[
        str,
        Meta(
            description="began; or of a waiting job next, bounds: reserved for it at the latest, "
            "past_runs: if jobs last as long as earlier ones."
        ),
    ]
    end: Annotated[Moment | None, Meta(description="Null: the end is unknown.")]
    end_basis: Annotated[
        str,
        Meta(description="ended, bounds: by max_duration, past_runs; empty: unknown."),
    ]
    reason: Annotated[str, Meta(description="Why it waits.")] = ""

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLane:
    """A pool, or a backend for jobs of queues without one."""

    kind: Annotated[str, Meta(description="pool or backend.")]
    name: str
    jobs: list[TimelineJob]
    left_out: Annotated[int, Meta(description="The number of further waiting jobs.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The lanes of all pools and backends with jobs between two moments."""

    now: Moment
    begin: Moment
    end: Moment
    lanes: list[TimelineLane]
    is_whole: Annotated[bool, Meta(description="False: older attempts were left out.")]
