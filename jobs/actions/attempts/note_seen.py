"""The store of what a backend reports of a cluster beside its phase: infra, machines, price."""

from __future__ import annotations

from typing import Any

from jobs.backends.base import SeenCluster
from jobs.models import Cluster


def note_seen(cluster: Cluster, seen: SeenCluster | None) -> None:
    """Store what is new. What the backend does not report now stays as it was."""
    news = news_of(cluster, seen)
    if news:
        Cluster.objects.filter(pk=cluster.pk).update(**news)
        for name, value in news.items():
            setattr(cluster, name, value)


def news_of(cluster: Cluster, seen: SeenCluster | None) -> dict[str, Any]:
    """Return the columns in which the row differs from the report, with the reported values."""
    if seen is None:
        return {}
    seen_values: dict[str, Any] = {
        "infra": seen.infra[:100],
        "resources": seen.resources[:200],
        "backend_key": seen.key[:64],
        "backend_status": seen.status[:200],
        "usd_per_hour": seen.usd_per_hour,
    }
    return {
        name: value
        for name, value in seen_values.items()
        if value not in ("", None) and value != getattr(cluster, name)
    }
