"""Reports of hosts on processors, memory, disks, network and GPUs. None: not reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.values import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGpu:
    """One GPU of a host. Null: it did not report."""

    index: int
    name: str
    utilization: Annotated[float | None, Meta(description="Percent.")]
    memory_used: Annotated[int | None, Meta(description="Bytes.")]
    memory_total: int | None
    celsius: float | None
    watts: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The latest report of a host; null what it did not report."""

    rank: int
    mesh: str
    address: str = ""
    status: Annotated[str, Meta(description="Of its worker.")]
    at: Annotated[Moment | None, Meta(description="When it reported this.")]
    is_silent: Annotated[
        bool, Meta(description="No report came for a minute although one was due.")
    ]
    cpu: Annotated[float | None, Meta(description="Percent of all its processors.")]
    cpus: int | None
    memory_used: Annotated[int | None, Meta(description="Bytes.")]
    memory_total: int | None
    disk_used: int | None
    disk_total: int | None
    net_in: Annotated[float | None, Meta(description="Bytes a second.")]
    net_out: float | None
    gpus: list[HostGpu]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A history in lists of one length: `t` in seconds since 1970, rates in bytes a second."""

    t: list[float]
    cpu: list[float | None]
    memory: list[float | None]
    disk: list[float | None]
    net_in: list[float | None]
    net_out: list[float | None]
    gpu: Annotated[list[list[float | None]], Meta(description="A list for each GPU.")]
    gpu_memory: list[list[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The history of one host, at most some 750 points."""

    rank: int
    step_s: Annotated[
        float, Meta(description="The distance of older points; 0: as they were reported.")
    ]
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """The use of all GPUs of an attempt, in per cent. Null: not known."""

    at: Annotated[Moment, Meta(description="Of the last report.")]
    now: Annotated[float | None, Meta(description="The mean of all hosts; null once it is over.")]
    mean: Annotated[float | None, Meta(description="The mean of all hosts over time.")]
    lowest: Annotated[
        float | None, Meta(description="The mean over time of the host that is lowest then.")
    ]
    idle_since: Annotated[
        Moment | None,
        Meta(description="Since when all GPUs are idle; null: some work, or do not report."),
    ]
    recent: Annotated[
        list[float], Meta(description="The last means of all hosts, the oldest first.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUseSeries:
    """The use of all GPUs over time in lists of one length: `t` in seconds since 1970."""

    t: list[float]
    mean: Annotated[list[float], Meta(description="Of all hosts.")]
    lowest: Annotated[list[float], Meta(description="Of the lowest host.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The hosts of one attempt, by rank."""

    attempt: Annotated[int | None, Meta(description="Its number.")]
    is_over: bool
    is_final: Annotated[
        bool,
        Meta(description="It is over, and no other attempt will be shown instead."),
    ]
    hosts: list[Host]
    series: Series | None = None
    gpu_use: Annotated[
        GpuUseSeries | None, Meta(description="Of all hosts. Null: none reports a GPU.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSeries:
    """A metric that a program reported on one rank. Null: the value was not finite."""

    name: str
    rank: int
    at: Annotated[Moment, Meta(description="Of the last report.")]
    step: Annotated[int, Meta(description="Of the last report.")]
    value: Annotated[float | None, Meta(description="Of the last report.")]
    lowest: float | None
    highest: float | None
    t: Annotated[
        list[float], Meta(description="Seconds since 1970; empty unless a name is chosen.")
    ]
    steps: list[int]
    values: Annotated[
        list[float | None], Meta(description="Of many reports, the means of neighbors.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMetrics:
    """The metrics that the program of one attempt reported in its output."""

    attempt: Annotated[int | None, Meta(description="Its number.")]
    is_over: bool
    is_final: Annotated[
        bool,
        Meta(description="It is over, and no other attempt will be shown instead."),
    ]
    is_full: Annotated[
        bool, Meta(description="No more can be kept: further names and ranks are left out.")
    ]
    series: list[ProgramSeries]
