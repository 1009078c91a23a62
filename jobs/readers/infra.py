"""The infrastructure of jobs: clouds, why some cannot be used, and free GPUs.

A page shows what is known and never waits for a cloud: a request has the background look.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from jobs.backends import registry
from jobs.backends.base import GpuState, is_keeping
from jobs.background.hints import wake
from jobs.ground import clock
from jobs.live import infra_cache
from monarch_client.wire.clusters import Cloud, Gpu, Infra


def infra() -> list[Infra]:
    """Describe every enabled backend; wake the background if the facts are old."""
    views = [_view(name) for name in registry.names()]
    if any(view.is_asking for view in views) and infra_cache.want():
        wake("infra")
    return views


def _view(name: str) -> Infra:
    backend = registry.get(name)
    if not is_keeping(backend):
        nodes = backend.capacity_nodes()
        return Infra(
            backend=name,
            num_nodes=nodes,
            clouds=[],
            cloud_problem="",
            gpus=[],
            gpu_problem="",
            asked_at=None,
            is_asking=False,
        )
    known = infra_cache.kept(name) or {}
    clouds, gpus = known.get("clouds") or {}, known.get("gpus") or {}
    at = float(known.get("at") or 0.0)
    return Infra(
        backend=name,
        num_nodes=None,
        clouds=_clouds(clouds.get("rows") or []),
        cloud_problem=str(clouds.get("problem") or ""),
        gpus=_gpus(GpuState(**row) for row in gpus.get("rows") or []),
        gpu_problem=str(gpus.get("problem") or ""),
        asked_at=datetime.fromtimestamp(at, timezone.utc) if at else None,
        is_asking=clock.now().timestamp() - at >= infra_cache.FRESH_S,
    )


def _clouds(rows: list[dict[str, Any]]) -> list[Cloud]:
    clouds = [Cloud(**row) for row in rows]
    return sorted(clouds, key=lambda cloud: (not cloud.is_enabled, cloud.name.lower()))


def _gpus(states: Iterable[GpuState]) -> list[Gpu]:
    by_type: dict[tuple[str, str], list[GpuState]] = {}
    for state in states:
        by_type.setdefault((state.infra, state.gpu), []).append(state)
    return [
        Gpu(
            infra=place,
            gpu=gpu,
            nodes=len({state.node for state in found}),
            total=sum(state.total for state in found),
            free=sum(state.free for state in found),
        )
        for (place, gpu), found in sorted(by_type.items())
    ]
