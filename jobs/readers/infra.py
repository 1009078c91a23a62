"""Where jobs can run: clouds, why some can't be used, and GPUs that are free.

A page shows what is known and never waits for a cloud: looking has the background ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from jobs.backends import registry
from jobs.backends.base import CloudState, GpuState, is_keeping
from jobs.background.hints import wake
from jobs.ground import clock
from jobs.live import infra_cache


@dataclass(frozen=True, slots=True)
class GpuRow:
    """GPUs of one type at one place, over all its nodes."""

    infra: str
    gpu: str
    nodes: int
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class InfraView:
    """One backend. `num_nodes` is what it has in all, None where only quotas limit it.

    Enabled clouds come first. A problem says why the rows beside it are missing. While
    `is_asking` an answer is on its way; what is shown meanwhile is from `asked_at`.
    """

    backend: str
    num_nodes: int | None
    clouds: list[CloudState]
    cloud_problem: str
    gpus: list[GpuRow]
    gpu_problem: str
    asked_at: datetime | None
    is_asking: bool


def infra() -> list[InfraView]:
    """Every enabled backend."""
    views = [_view(name) for name in registry.names()]
    if any(view.is_asking for view in views) and infra_cache.want():
        wake("infra")
    return views


def _view(name: str) -> InfraView:
    backend = registry.get(name)
    if not is_keeping(backend):
        nodes = backend.capacity_nodes()
        return InfraView(name, nodes, [], "", [], "", asked_at=None, is_asking=False)
    known = infra_cache.kept(name) or {}
    clouds, gpus = known.get("clouds") or {}, known.get("gpus") or {}
    at = float(known.get("at") or 0.0)
    return InfraView(
        backend=name,
        num_nodes=None,
        clouds=_clouds(clouds.get("rows") or []),
        cloud_problem=str(clouds.get("problem") or ""),
        gpus=_gpus(GpuState(**row) for row in gpus.get("rows") or []),
        gpu_problem=str(gpus.get("problem") or ""),
        asked_at=datetime.fromtimestamp(at, timezone.utc) if at else None,
        is_asking=clock.now().timestamp() - at >= infra_cache.FRESH_S,
    )


def _clouds(rows: list[dict[str, Any]]) -> list[CloudState]:
    clouds = [CloudState(**row) for row in rows]
    return sorted(clouds, key=lambda cloud: (not cloud.is_enabled, cloud.name.lower()))


def _gpus(states: Iterable[GpuState]) -> list[GpuRow]:
    by_type: dict[tuple[str, str], list[GpuState]] = {}
    for state in states:
        by_type.setdefault((state.infra, state.gpu), []).append(state)
    return [
        GpuRow(
            infra=place,
            gpu=gpu,
            nodes=len({state.node for state in found}),
            total=sum(state.total for state in found),
            free=sum(state.free for state in found),
        )
        for (place, gpu), found in sorted(by_type.items())
    ]
