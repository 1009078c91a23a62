"""Storing what a backend tells about a cluster beside its phase: place, machines, price."""

from __future__ import annotations

from typing import Any

from jobs.backends.base import SeenCluster
from jobs.models import Cluster


def note_seen(cluster: Cluster, seen: SeenCluster | None) -> None:
    """Write down what is new. What the backend does not tell now stays as it was."""
    news = news_of(cluster, seen)
    if news:
        Cluster.objects.filter(pk=cluster.pk).update(**news)
        for name, value in news.items():
            setattr(cluster, name, value)


def news_of(cluster: Cluster, seen: SeenCluster | None) -> dict[str, Any]:
    """The columns in which the row says something else, with what is told."""
    if seen is None:
        return {}
    told: dict[str, Any] = {
        "infra": seen.infra[:100],
        "resources": seen.resources[:200],
        "backend_key": seen.key[:64],
        "backend_status": seen.status[:200],
        "usd_per_hour": seen.usd_per_hour,
    }
    return {
        name: value
        for name, value in told.items()
        if value not in ("", None) and value != getattr(cluster, name)
    }
