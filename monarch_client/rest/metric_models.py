"""What hosts tell of themselves, as values. None: they did not. Numbers are per cent or bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Gpu:
    """One GPU of a host."""

    index: int
    name: str
    utilization: float | None
    memory_used: int | None
    memory_total: int | None
    celsius: float | None
    watts: float | None


@dataclass(frozen=True)
class Host:
    """The latest that a host told, at `at`. `net_in`, `net_out`: bytes a second."""

    rank: int
    mesh: str
    status: str
    at: datetime | None
    is_silent: bool
    cpu: float | None
    cpus: int | None
    memory_used: int | None
    memory_total: int | None
    disk_used: int | None
    disk_total: int | None
    net_in: float | None
    net_out: float | None
    gpus: list[Gpu]


@dataclass(frozen=True)
class Columns:
    """A host's history, all lists of one length; `gpu` and `gpu_memory` have one for each GPU."""

    t: list[float]
    cpu: list[float | None]
    memory: list[float | None]
    disk: list[float | None]
    net_in: list[float | None]
    net_out: list[float | None]
    gpu: list[list[float | None]]
    gpu_memory: list[list[float | None]]


@dataclass(frozen=True)
class Series:
    """The history of one host; `step_s`: how far apart older points are, 0 as they came."""

    rank: int
    step_s: float
    columns: Columns


@dataclass(frozen=True)
class Metrics:
    """The hosts of one attempt, by rank. `is_final`: nothing more will come of it."""

    attempt: int | None
    is_over: bool
    is_final: bool
    hosts: list[Host]
    series: Series | None = None
