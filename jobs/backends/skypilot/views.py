"""Conversion of SkyPilot's rows, requests and jobs to views and errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from jobs.backends.base import ClusterPhase, ClusterView, NodeView, SeenCluster
from jobs.errors import BackendError, BackendUnavailableError, NoCapacityError
from monarch_client.skypilot.errors import SkyPilotError

Row = Mapping[str, Any]

# A request in one of these states may still change something.
ACTIVE = frozenset({"PENDING", "RUNNING"})
STARTS = frozenset({"launch", "exec", "start"})
ENDS = frozenset({"down", "stop"})
# A job in one of these states has, or will have, runners that live.
_LIVING_JOBS = frozenset({"INIT", "PENDING", "SETTING_UP", "RUNNING"})
# What SkyPilot says of machines that are not there, although it may show them as up.
NO_NODES = frozenset({"not_up", "not_found"})
_MOST_REASONS, _LONGEST = 3, 2000
_TRY_LATER = frozenset({"server_away", "interrupted", "not_up"})


def error_of(error: SkyPilotError) -> BackendError:
    """Convert SkyPilot's refusal: wait for free capacity, wait for the server, or give up."""
    if error.kind == "no_capacity":
        return NoCapacityError(_with_reasons(error))
    if error.kind in _TRY_LATER:
        return BackendUnavailableError(f"SkyPilot: {error.message}")
    return BackendError(error.message)


def _with_reasons(error: SkyPilotError) -> str:
    """Return the message with what each location reported: the message alone names none."""
    reasons = [str(each) for each in error.detail.get("reasons", ())]
    more = len(reasons) - _MOST_REASONS
    rest = [f"And {more} more."] if more > 0 else []
    return " ".join([error.message, *reasons[:_MOST_REASONS], *rest])[:_LONGEST]


def verb_of(request: Row) -> str:
    """Return a request's verb: SkyPilot writes it as sky.launch, or as launch."""
    return str(request["name"]).rpartition(".")[2]


def active(requests: Iterable[Row], verbs: frozenset[str]) -> Row | None:
    """Return the newest request of these verbs that is not over."""
    return next(
        (row for row in requests if row["status"] in ACTIVE and verb_of(row) in verbs), None
    )


def seen(row: Row) -> SeenCluster:
    """Convert a row of `status`."""
    price = row.get("usd_per_hour")
    return SeenCluster(
        name=str(row["name"]),
        status=str(row.get("status") or ""),
        key=str(row.get("hash") or ""),
        infra=str(row.get("infra") or ""),
        resources=str(row.get("resources") or ""),
        num_nodes=int(row.get("num_nodes") or 0),
        launched_at=_moment(row.get("launched_at")),
        usd_per_hour=None if price is None else Decimal(str(price)),
        owner=str(row.get("user") or ""),
    )


def view_of(row: Row, phase: ClusterPhase) -> ClusterView:
    """Return the view of a row's cluster, in a phase that was determined elsewhere."""
    alive = phase is ClusterPhase.UP
    addresses = row.get("addresses") or []
    nodes = tuple(NodeView(rank, pair[0], alive) for rank, pair in enumerate(addresses))
    return ClusterView(phase, nodes, str(row.get("status") or ""), seen=seen(row))


def job_lives(job: Row) -> bool:
    """Whether SkyPilot takes the job's processes for alive."""
    return job["status"] in _LIVING_JOBS


def under_way(requests: list[Row], row: Row | None) -> ClusterView | None:
    """Return the view while SkyPilot works on the cluster; None while it does not."""
    end = active(requests, ENDS)
    # Of a row that is newer than the answer about requests, the stop is over.
    has_stopped = row is not None and row["status"] == "STOPPED"
    if end is not None and row is not None and not (has_stopped and verb_of(end) == "stop"):
        return view_of(row, ClusterPhase.ENDED)
    if active(requests, STARTS) is not None:
        return ClusterView(ClusterPhase.STARTING, seen=seen(row) if row else None)
    return None


def without_nodes(row: Row | None, *, is_lost: bool) -> ClusterView:
    """Return the view of a cluster whose nodes are not up: ENDED if `is_lost`, else GONE.

    `is_lost`: the attempt had been started, and was lost with them; elsewhere it would run twice.
    Else the launch was cut off and no process continues it: requested again, it is repaired.
    """
    phase = ClusterPhase.ENDED if is_lost else ClusterPhase.GONE
    return ClusterView(phase, backend_status=str(row["status"]) if row else "")


def failed(error: BackendError, row: Row | None) -> ClusterView:
    """Return the view of a launch that failed."""
    status = str(row["status"]) if row else ""
    return ClusterView(ClusterPhase.FAILED, (), status, failure=error)


def _moment(value: Any) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(float(value), timezone.utc)
