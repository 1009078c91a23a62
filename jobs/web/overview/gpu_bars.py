"""The GPUs of each type as rows with bars: those that a project holds, a pool and a fleet have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monarch_client.wire.overview import GpusOfType, PoolGpus


@dataclass(frozen=True, slots=True)
class GpuBar:
    """The GPUs in use of all that a pool or an infrastructure has."""

    name: str
    used: int
    total: int

    @property
    def percent(self) -> float:
        """The length of the bar."""
        return 100.0 * self.used / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class GpuRow:
    """The GPUs of one type."""

    gpu: str
    held: int
    idle: int
    use: float | None
    bars: list[GpuBar]


def gpu_rows(gpus: Iterable[GpusOfType]) -> list[GpuRow]:
    """Return the rows; infrastructures with one type are one bar for each, after the pools."""
    return [
        GpuRow(
            gpu=row.gpu,
            held=row.held,
            idle=row.idle,
            use=row.use,
            bars=[*map(_bar, row.pools), *map(_bar, row.fleet)],
        )
        for row in gpus
    ]


def _bar(row: PoolGpus) -> GpuBar:
    return GpuBar(row.name, row.used, row.total)
