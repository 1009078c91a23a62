"""Hourly prices of jobs, for quotas that limit money.

No backend is queried here: `jobs.reconcilers.prices` requests the missing prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jobs.models import Cluster, ExpectedPrice, Quota
from jobs.scheduling.limits import USD_PER_HOUR, Shape


@dataclass(frozen=True, slots=True)
class Prices:
    """Known prices in US$: expected ones by backend and `Job.price_key`, others by cluster.

    An unknown expected price is None, with the reason.
    """

    are_counted: bool = False
    expected: Mapping[tuple[str, str], tuple[float | None, str]] = field(default_factory=dict)
    of_clusters: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def load(cls, quotas: Iterable[Quota]) -> Prices:
        """Load the known prices, if one of `quotas` limits money."""
        if not any(USD_PER_HOUR in quota.caps for quota in quotas):
            return cls()
        rows = ExpectedPrice.objects.values_list(
            "backend_name", "price_key", "usd_per_hour", "problem"
        )
        clusters = Cluster.objects.existing()
        return cls(
            are_counted=True,
            expected={
                (backend, key): (None if usd is None else float(usd), problem)
                for backend, key, usd, problem in rows
            },
            of_clusters={
                pk: float(usd)
                for pk, usd in clusters.values_list("pk", "usd_per_hour")
                if usd is not None
            },
        )

    def of_waiting(self, shape: Shape, price_key: str) -> Shape:
        """Return `shape` with the expected price of a start."""
        usd, problem = self.expected.get((shape.backend_name, price_key), (None, ""))
        return shape.unpriced_for(problem) if usd is None else shape.priced(usd)

    def of_running(self, shape: Shape, cluster_id: int | None) -> Shape:
        """Return `shape` with what its cluster costs; until that is known, as expected."""
        usd = None if cluster_id is None else self.of_clusters.get(cluster_id)
        return shape if usd is None else shape.priced(usd)
