"""The meshes of a job: what failed and when, a grid of hosts and procs, and the tree of actors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from jobs.permissions import Actor
from jobs.readers.mesh import has_failed, job_mesh
from jobs.web.base.element_keys import element_key
from jobs.web.jobs.hosts_tab import number_in
from jobs.web.jobs.mesh_actors import actor_heat
from monarch_client.runner.vocabulary import mesh_states
from monarch_client.wire.mesh import Mesh, MeshActor, MeshHost, MeshProc

# Beyond so many procs the tree holds those that failed, and the first of the others.
MOST_PROCS_IN_TREE = 100
# No page grows without end: of those that failed, of the actors of one proc, and of all.
MOST_HOSTS_IN_GRID, MOST_UNWELL_IN_GRID = 200, 300
MOST_FAILED_IN_TREE, MOST_ACTORS_OF_PROC, MOST_ACTORS_IN_TREE = 300, 50, 500
_UNHEALTHY = (
    mesh_states.UNREACHABLE,
    mesh_states.DEAD,
    mesh_states.SILENT,
    mesh_states.POISONED,
    mesh_states.FAILED,
    mesh_states.UNKNOWN,
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """An actor of the tree. `key`: its place in the page, the same as long as it is there."""

    key: str
    actor: MeshActor


@dataclass(frozen=True, slots=True)
class Twig:
    """A proc of the tree, with those of its actors that are shown, and how many there are."""

    key: str
    proc: MeshProc
    leaves: list[Leaf]
    actors: int

    @property
    def hidden(self) -> int:
        """Return the number of its actors that are not shown."""
        return self.actors - len(self.leaves)


@dataclass(frozen=True, slots=True)
class Branch:
    """A host of the tree, with those of its procs that are shown."""

    key: str
    host: MeshHost
    twigs: list[Twig]
    hidden: int


def mesh_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose an attempt and a node."""
    found = job_mesh(actor, slug, job_id, number_in(query, "attempt"))
    rank = number_in(query, "rank")
    if rank is not None:
        found = _of_node(found, rank)
    branches, grid = _branches(found), _grid(found.hosts)
    only_unwell = query.get("health") == "unwell"
    address = {name: query[name] for name in ("attempt", "rank") if query.get(name)}
    address["show"] = "mesh"
    return {
        "slug": slug,
        "job_id": job_id,
        "mesh": found,
        "mesh_rank": rank,
        "is_final": found.is_final,
        "grid": grid,
        "hosts_beside_grid": len(found.hosts) - len(grid),
        "unwell_beside_grid": sum(map(_is_unwell, found.hosts)) - sum(map(_is_unwell, grid)),
        "heat": actor_heat(found, only_unwell=only_unwell),
        "only_unwell": only_unwell,
        "all_actors_query": urlencode(address),
        "unwell_query": urlencode({**address, "health": "unwell"}),
        "branches": branches,
        "hidden_hosts": len(found.hosts) - len(branches),
        "mesh_summary": _summary(found),
        "failures": sum(change.is_failure for change in found.changes),
    }


def _of_node(found: Mesh, rank: int) -> Mesh:
    """Return the part of the meshes on the node of a rank."""
    return replace(
        found,
        left_out=0,
        hosts=[host for host in found.hosts if host.rank == rank],
        changes=[change for change in found.changes if change.rank == rank],
    )


def _grid(hosts: list[MeshHost]) -> list[MeshHost]:
    """Return all hosts if they are few; else the unwell ones, and the first of the others."""
    unwell = sum(map(_is_unwell, hosts))
    room = {True: MOST_UNWELL_IN_GRID, False: MOST_HOSTS_IN_GRID - unwell}
    shown = []
    for host in hosts:
        is_unwell = _is_unwell(host)
        if room[is_unwell] > 0:
            room[is_unwell] -= 1
            shown.append(host)
    return shown


def _is_unwell(host: MeshHost) -> bool:
    return host.told not in mesh_states.HEALTHY or any(
        has_failed(proc) or proc.told not in mesh_states.HEALTHY for proc in host.procs
    )


def _branches(found: Mesh) -> list[Branch]:
    failed = sum(has_failed(proc) for host in found.hosts for proc in host.procs)
    room = {True: MOST_FAILED_IN_TREE, False: MOST_PROCS_IN_TREE - failed}
    actors_room = MOST_ACTORS_IN_TREE
    branches = []
    for host in found.hosts:
        shown = []
        for proc in host.procs:
            if room[has_failed(proc)] <= 0:
                continue
            room[has_failed(proc)] -= 1
            twig = _twig(host, proc, min(actors_room, MOST_ACTORS_OF_PROC))
            actors_room -= len(twig.leaves)
            shown.append(twig)
        hidden = len(host.procs) - len(shown) + host.left_out
        # Where there are many, the grid shows the healthy ones.
        if shown or not hidden or host.told not in mesh_states.HEALTHY:
            branches.append(Branch(element_key([host.id]), host, shown, hidden))
    return branches


def _twig(host: MeshHost, proc: MeshProc, most: int) -> Twig:
    # Those that failed first; the others stay in their order.
    actors = sorted(proc.actors, key=lambda actor: not has_failed(actor))[:most]
    leaves = [Leaf(element_key([host.id, proc.id, actor.id]), actor) for actor in actors]
    return Twig(element_key([host.id, proc.id]), proc, leaves, len(proc.actors) + proc.left_out)


def _summary(found: Mesh) -> str:
    """Describe in text what the grid shows in colors."""
    procs = [proc for host in found.hosts for proc in host.procs]
    actors = [actor for proc in procs for actor in proc.actors]
    counts = (
        ("host", len(found.hosts) + found.left_out),
        ("proc", len(procs) + sum(host.left_out for host in found.hosts)),
        ("actor", len(actors) + sum(proc.left_out for proc in procs)),
    )
    # Of a driver that ended soon, the hosts alone are known.
    known = [(word, count) for word, count in counts if count or word == "host"]
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in known]
    nodes: list[MeshHost | MeshProc | MeshActor] = [*found.hosts, *procs, *actors]
    states = [node.told for node in nodes]
    trouble = ", ".join(f"{states.count(bad)} {bad}" for bad in _UNHEALTHY if bad in states)
    # Nodes beyond the limit are mostly healthy, but were not reported one by one.
    is_all = sum(count for _, count in counts) == len(nodes)
    well = "all well" if is_all else "all well that are listed"
    if found.is_over:
        # The last report is older than the end, and knows nothing of what caused it.
        well = "no failure had been reported"
    return f"{', '.join(parts)}: {trouble or well}"
