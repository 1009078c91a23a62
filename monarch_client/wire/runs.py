"""Runs: jobs of one name in time, and jobs beside one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.jobs import Job
from monarch_client.wire.metrics import GpuUseSeries

MOST_COMPARED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetric:
    """The last report of a program metric on the lowest rank. Null: the value was not finite."""

    name: str
    rank: int
    step: int
    value: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job with its times, its code, and the last values that its program reported."""

    job: Job
    wait_s: Annotated[
        float | None, Meta(description="From its submission to its first start, or to now.")
    ]
    duration_s: Annotated[
        float | None, Meta(description="From its first start to its end, or to now.")
    ]
    code: Annotated[
        str,
        Meta(
            description="Of its `workdir`: the begin of the digest of an upload, or the URL and "
            "ref of a repository. Empty: it has none."
        ),
    ]
    metrics: Annotated[list[RunMetric], Meta(description="By name; the first 24.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun(Run):
    """A run among those of one name."""

    number: Annotated[
        int | None,
        Meta(description="Among the runs of this name, from 1. Null after more than 2,000."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    """A field of the specifications with different values."""

    path: Annotated[str, Meta(description="Such as `envs.LR`.")]
    values: Annotated[
        list[str | None],
        Meta(description="In the order of the runs, long ones cut. Null: it lacks the field."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChanges:
    """The differences of a run's specification from that of the first run."""

    job: int
    lines: Annotated[
        list[str] | None,
        Meta(description="A unified diff. Empty: they are equal. Null: one is too long."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """The history of a metric on the lowest rank, of all attempts of a run."""

    job: int
    name: str
    t: Annotated[list[float], Meta(description="Seconds since 1970.")]
    steps: list[int]
    values: Annotated[
        list[float | None], Meta(description="Of many reports, the means of neighbors.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of runs, in the order of the request."""

    runs: list[Run]
    fields: Annotated[list[SpecField], Meta(description="Of the specifications, at most 100.")] = (
        field(default_factory=list)
    )
    changes: Annotated[list[SpecChanges], Meta(description="Of each run after the first.")] = field(
        default_factory=list
    )
    series: list[RunSeries] = field(default_factory=list)
    gpu_use: Annotated[
        list[GpuUseSeries | None],
        Meta(description="Of the last attempt of each run. Null: no host reported a GPU."),
    ] = field(default_factory=list)
