"""Samples of hosts as runners send them, for tests."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from jobs.ground import clock
from jobs.logs.samples import kept_of
from jobs.models import Attempt, GpuUse, HostMetrics
from jobs.policies.series import point_of
from tests.frame_bytes import T0

GIB = 1 << 30


def sample(after_s: float, *, rank: int = 0, **fields: Any) -> dict[str, Any]:
    """Return one sound sample, `after_s` seconds after T0."""
    return {
        "rank": rank,
        "t": T0 + after_s,
        "kind": "metrics",
        "cpu": 50.0,
        "cpus": 8,
        "memory_used": 8 * GIB,
        "memory_total": 32 * GIB,
        "disk_used": 100 * GIB,
        "disk_total": 400 * GIB,
        "net_in": 1_000_000,
        "net_out": 2_000,
        "gpus": [],
        **fields,
    }


def gpu(index: int, utilization: float | None) -> dict[str, Any]:
    """Return one GPU of a sample."""
    return {
        "index": index,
        "name": "NVIDIA H100",
        "utilization": utilization,
        "memory_used": 60 * GIB,
        "memory_total": 80 * GIB,
        "celsius": 61,
        "watts": 412.5,
    }


def tell_of_hosts(attempt: Attempt, hosts: int, gpus: int = 0, points: int = 120) -> None:
    """Store a history as some hours of work leave it, always the same; its last point is now."""
    now = clock.now().timestamp()
    rows = []
    for rank in range(hosts):
        reported = [_at_work(rank, gpus, number, points) for number in range(points)]
        times = [now - 10.0 * (points - 1 - number) for number in range(points)]
        latest = kept_of(reported[-1])
        rows.append(
            HostMetrics(
                attempt=attempt,
                rank=rank,
                at=clock.now(),
                latest=latest,
                history=[
                    point_of(kept_of(each), at) for each, at in zip(reported, times, strict=True)
                ],
            )
        )
    HostMetrics.objects.bulk_create(rows)


def tell_of_use(attempt: Attempt, means: list[float], *, idle_min: float = 0) -> None:
    """Store the GPU use of all hosts, a point each half minute; the last report is now."""
    now = clock.now()
    begin = now.timestamp() - 30 * len(means)
    GpuUse.objects.create(
        attempt=attempt,
        job_id=attempt.job_id,
        at=now,
        busy_at=now - timedelta(minutes=idle_min),
        points=[
            [begin + 30 * number, 4, mean, max(0.0, mean - 9)] for number, mean in enumerate(means)
        ],
    )


def _at_work(rank: int, gpus: int, number: int, points: int) -> dict[str, Any]:
    wave = math.sin(number / 9 + rank)
    part = number / points
    return sample(
        number * 10,
        rank=rank,
        cpu=round(35 + 25 * wave + rank * 17 % 30, 1),
        memory_used=int((6 + 18 * part + rank % 5) * GIB),
        net_in=int(3e6 * (1 + wave) + 1e5),
        net_out=int(8e5 * (1.2 - wave)),
        gpus=[
            gpu(index, round(min(100.0, max(0.0, 82 + 12 * wave - 9 * index - rank * 37 % 70)), 1))
            for index in range(gpus)
        ],
    )
