"""Clusters that outlive their jobs, and which queued job may go onto which of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobs.scheduling.limits import JOBS, USD_PER_HOUR, Amounts, Shape

# The runner uses the port that a job names, and the next one.
PORTS_APART = 2
# What is counted of jobs that is no part of machines.
NO_MACHINES = (JOBS, USD_PER_HOUR)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks for of clusters that are kept."""

    project_id: int
    num_nodes: int
    port: int
    wants_gpus: bool = False
    fingerprint: str = ""  # of the machines it would make; empty: it takes none that was kept
    cluster: str = ""  # the one cluster it wants, by name
    pool: str = ""  # from which its queue has machines
    keeps_s: float | None = None  # for how long its machines stay on after it, if it keeps any


@dataclass(frozen=True, slots=True)
class Guest:
    """An attempt that is on a cluster now."""

    job_id: int
    port: int
    wants_gpus: bool


@dataclass(slots=True)
class KeptCluster:
    """A cluster of a project that takes jobs. A plan adds the guests it lets in."""

    name: str
    project_id: int
    backend_name: str
    num_nodes: int
    fingerprint: str
    is_on: bool = True
    is_ready: bool = True  # not while it starts, or is being switched off
    guests: list[Guest] = field(default_factory=list)
    usd_per_hour: float | None = None  # of all its nodes; None: nobody knows
    pool: str = ""  # in which its machines are counted, as long as it lives
    machines: Amounts = ()  # what is counted of all its nodes
    keeps_s: float = 0.0  # for how long they stay on after a job that says nothing about it

    def switched_on(self, shape: Shape) -> Amounts:
        """What it takes of what machines there are to put a job there: all of its nodes, or none.

        Where nobody says what they are, they are like those that the job asks for.
        """
        return () if self.is_on else self.all_of(shape)

    def all_of(self, shape: Shape) -> Amounts:
        """All its machines, by what is counted; of a job like which they are if nobody says."""
        if self.machines:
            return self.machines
        whole = self.num_nodes / shape.num_nodes
        return tuple(
            (what, amount * whole) for what, amount in shape.demand if what not in NO_MACHINES
        )

    def as_guest(self, shape: Shape) -> Shape:
        """What a job counts for there: of its price, as much as each who is on it then."""
        if self.usd_per_hour is None:
            return shape
        return shape.priced(self.usd_per_hour / (len(self.guests) + 1))


def fits(wish: Wish, cluster: KeptCluster) -> bool:
    """Whether a job that asks for just such machines can have this cluster to itself."""
    return (
        bool(wish.fingerprint)
        and cluster.is_ready
        and not cluster.guests
        and cluster.project_id == wish.project_id
        and cluster.fingerprint == wish.fingerprint
        and cluster.pool == wish.pool
    )


def why_not(wish: Wish, cluster: KeptCluster) -> str:
    """Why a job that names this cluster has to wait; "" if it need not."""
    if cluster.pool != wish.pool:
        return (
            f"Cluster {cluster.name} is one of {_said(cluster.pool)}, and the job's queue has "
            f"machines of {_said(wish.pool)}."
        )
    if not cluster.is_ready:
        return f"Waits for cluster {cluster.name}, which is neither up nor switched off just now."
    for guest in cluster.guests:
        if abs(guest.port - wish.port) < PORTS_APART:
            return (
                f"Waits for cluster {cluster.name}: job {guest.job_id} is on it with port "
                f"{guest.port}. With a portal.port at least {PORTS_APART} away it could run now."
            )
        if guest.wants_gpus and wish.wants_gpus:
            return f"Waits for the GPUs of cluster {cluster.name}, which job {guest.job_id} has."
    return ""


def _said(pool: str) -> str:
    kind, _, name = pool.partition(":")
    return f"pool {name}" if kind == "pool" else "no pool"
