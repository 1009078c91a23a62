"""Short constructors of snapshots: jobs of nodes, and the backends that have them."""

from __future__ import annotations

from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Snapshot, Start, Wait


def shape(
    nodes: int = 1, backend: str = "local", *, limits: tuple[str, ...] = (), pool: str = ""
) -> Shape:
    """Return the request of a job of so many nodes, in a pool or on the backend alone."""
    places = (*([f"pool:{pool}"] if pool else []), f"backend:{backend}")
    demand = (("jobs", 1.0), ("nodes", float(nodes)))
    return Shape(places[0], backend, nodes, demand, (*limits, *places), float(nodes))


def machines(used: float = 0, **nodes: float) -> dict[str, Limit]:
    """Return the limits of backends with so many nodes each, of which `used` are in use."""
    return {
        f"backend:{name}": Limit(
            LimitKind.BACKEND, name, {"nodes": float(total)}, {"nodes": float(used)}
        )
        for name, total in nodes.items()
    }


def started(snapshot: Snapshot) -> list[int]:
    """List the jobs that the plan starts, in order."""
    return [each.job_id for each in plan(snapshot) if isinstance(each, Start)]


def sentences(snapshot: Snapshot) -> dict[int, str]:
    """Return the reported reason of each waiting job."""
    return {each.job_id: each.cause.sentence for each in plan(snapshot) if isinstance(each, Wait)}
