"""The hosts of a job: a tile for each, or a grid of many, and the history of one as charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404

from jobs.permissions import Actor
from jobs.readers.host_metrics import HostChoice, host_metrics
from jobs.web.base.figures import percent
from jobs.web.jobs.charts import charts_of, use_chart
from monarch_client.wire.metrics import Host, Hosts

# More hosts than these are a grid, colored by one value of each.
MOST_TILES = 24
CHART_POINTS = 240
_LAST_RANK = 2**31 - 1
_MOST_DIGITS = 20
_KINDS = {"gpu": "GPU", "cpu": "CPU", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One host of the grid. `heat`: 0 to 9, "n" for not known, "s" for silent."""

    rank: int
    heat: str
    words: str


def hosts_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose attempt, rank and the colored figure."""
    attempt, rank = number_in(query, "attempt"), number_in(query, "rank")
    choice = HostChoice(attempt, rank or 0, CHART_POINTS)
    found = host_metrics(actor, slug, job_id, choice)
    is_grid = len(found.hosts) > MOST_TILES
    kinds = [kind for kind in _KINDS if kind != "gpu" or any(host.gpus for host in found.hosts)]
    by = query.get("by", "") if query.get("by", "") in kinds else kinds[0]
    gpus = next((host.gpus for host in found.hosts if host.rank == choice.rank), [])
    return {
        "slug": slug,
        "job_id": job_id,
        "found": found,
        "is_final": found.is_final,
        "asked_attempt": attempt,
        "rank": choice.rank,
        "is_grid": is_grid,
        "cells": [_cell(host, by) for host in found.hosts] if is_grid else [],
        "kinds": [(kind, _KINDS[kind]) for kind in kinds],
        "by": by,
        "summary": _summary(found),
        "use_chart": use_chart(found.gpu_use) if found.gpu_use else None,
        "charts": charts_of(found.series, gpus) if found.series else [],
    }


def number_in(query: Mapping[str, str], name: str) -> int | None:
    """Return the number `name` in a query; None if there is none, Http404 if it is invalid."""
    text = query.get(name, "")
    if not text:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or int(text) > _LAST_RANK:
        raise Http404(f"{text[:12]} is no number of {name}.")
    return int(text)


def _cell(host: Host, by: str) -> Cell:
    value: float | None = getattr(host, by)
    known = [(word, getattr(host, kind)) for kind, word in _KINDS.items()]
    figures = ", ".join(f"{word} {percent(each)}" for word, each in known if each is not None)
    if host.is_silent:
        heat, figures = "s", f"silent; last {figures}"
    else:
        heat = "n" if value is None else str(min(9, int(value // 10)))
    return Cell(host.rank, heat, f"{host.mesh} {figures or 'no report yet'}".strip())


def _summary(found: Hosts) -> str:
    """Describe in text what the grid shows in colors."""
    parts = []
    for kind, word in _KINDS.items():
        values = [value for host in found.hosts if (value := getattr(host, kind)) is not None]
        if values:
            parts.append(f"{word} {percent(sum(values) / len(values))}")
    silent = sum(host.is_silent for host in found.hosts)
    mean = f"mean {', '.join(parts)}" if parts else "no report yet"
    return f"{mean}; {silent} silent" if silent else mean
