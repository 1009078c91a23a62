"""Clusters that outlive their jobs, and which queued job may go onto which of them."""

from __future__ import annotations

from dataclasses import dataclass, field

# The runner uses the port that a job names, and the next one.
PORTS_APART = 2


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks for of clusters that are kept."""

    project_id: int
    num_nodes: int
    port: int
    wants_gpus: bool = False
    fingerprint: str = ""  # of the machines it would make; empty: it takes none that was kept
    cluster: str = ""  # the one cluster it wants, by name


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

    @property
    def nodes_to_switch_on(self) -> int:
        """How many nodes it takes to put a job there."""
        return 0 if self.is_on else self.num_nodes


def fits(wish: Wish, cluster: KeptCluster) -> bool:
    """Whether a job that asks for just such machines can have this cluster to itself."""
    return (
        bool(wish.fingerprint)
        and cluster.is_ready
        and not cluster.guests
        and cluster.project_id == wish.project_id
        and cluster.fingerprint == wish.fingerprint
    )


def why_not(wish: Wish, cluster: KeptCluster) -> str:
    """Why a job that names this cluster has to wait; "" if it need not."""
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
