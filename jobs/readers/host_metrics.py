"""The reported metrics of an attempt's hosts: the latest of each, and one host's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from jobs.ground import clock
from jobs.models import Attempt, HostMetrics, Worker
from jobs.permissions import Actor, job_for
from jobs.policies.series import (
    MOST_POINTS,
    MOST_RECENT,
    bounded,
    columns_of,
    late_after,
    percent,
)
from jobs.readers.chosen_attempt import chosen_attempt
from jobs.readers.gpu_use import gpu_use_series
from monarch_client.wire.metrics import Columns, Host, HostGpu, Hosts, Series

EVERYTHING = MOST_POINTS + 2 * MOST_RECENT


class GpuView(HostGpu):
    """A GPU with what pages show besides."""

    __slots__ = ()

    @property
    def memory(self) -> float | None:
        """The part of its memory in use, in per cent."""
        return percent(self.memory_used, self.memory_total)


class HostView(Host):
    """A host with what pages show besides."""

    __slots__ = ()

    @property
    def memory(self) -> float | None:
        """The part of the memory in use, in per cent."""
        return percent(self.memory_used, self.memory_total)

    @property
    def disk(self) -> float | None:
        """The part of the disk in use, in per cent."""
        return percent(self.disk_used, self.disk_total)

    @property
    def gpu(self) -> float | None:
        """The mean utilization of its GPUs, in per cent."""
        reported = [each.utilization for each in self.gpus if each.utilization is not None]
        return round(sum(reported) / len(reported), 1) if reported else None


@dataclass(frozen=True, slots=True)
class HostChoice:
    """A choice of attempt (by number; None: the newest), and of a host's history and its points."""

    attempt: int | None = None
    rank: int | None = None
    points: int = EVERYTHING


def host_metrics(actor: Actor, slug: str, job_id: int, choice: HostChoice) -> Hosts:
    """Return the hosts. NotFoundError as for `job_for`, or for an attempt that does not exist."""
    job = job_for(actor, slug, job_id)
    attempt = chosen_attempt(job, choice.attempt)
    if attempt is None:
        return Hosts(
            attempt=None, is_over=False, is_final=job.is_final, hosts=[], series=None, gpu_use=None
        )
    is_over = attempt.ended_at is not None
    return Hosts(
        attempt=attempt.number,
        is_over=is_over,
        is_final=is_over and (job.is_final or choice.attempt is not None),
        hosts=[*_hosts(attempt)],
        series=None if choice.rank is None else _series(attempt, choice.rank, choice.points),
        gpu_use=gpu_use_series(attempt),
    )


def _hosts(attempt: Attempt) -> list[HostView]:
    workers = {worker.rank: worker for worker in attempt.workers.all()}
    rows = attempt.host_metrics.only("attempt", "rank", "at", "latest")
    reported = {row.rank: row for row in rows}
    late = late_after(settings.MPORTAL_METRICS_SECONDS)
    silent_before = None if attempt.ended_at else clock.now() - late
    return [
        _host(rank, workers.get(rank), reported.get(rank), silent_before)
        for rank in sorted({*workers, *reported})
    ]


def _host(
    rank: int, worker: Worker | None, row: HostMetrics | None, silent_before: datetime | None
) -> HostView:
    latest: dict[str, Any] = row.latest if row else {}
    return HostView(
        rank=rank,
        mesh=worker.mesh if worker else "",
        address=worker.address if worker else "",
        status=worker.status if worker else "",
        at=row.at if row else None,
        is_silent=bool(row and silent_before and row.at < silent_before),
        cpu=latest.get("cpu"),
        cpus=latest.get("cpus"),
        memory_used=latest.get("memory_used"),
        memory_total=latest.get("memory_total"),
        disk_used=latest.get("disk_used"),
        disk_total=latest.get("disk_total"),
        net_in=latest.get("net_in"),
        net_out=latest.get("net_out"),
        gpus=[_gpu(place, gpu) for place, gpu in enumerate(latest.get("gpus") or [])],
    )


def _gpu(place: int, gpu: dict[str, Any]) -> GpuView:
    index = gpu["index"]
    return GpuView(**{**gpu, "index": place if index is None else index})


def _series(attempt: Attempt, rank: int, most: int) -> Series | None:
    row = attempt.host_metrics.filter(rank=rank).first()
    if row is None:
        return None
    points, step_s = bounded([*row.history, *row.recent], row.step_s, most)
    return Series(rank=rank, step_s=step_s, columns=Columns(**columns_of(points)))
