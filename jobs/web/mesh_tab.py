"""The meshes of a job: what failed and when, a grid of hosts and procs, and the tree of actors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.readers.mesh import ActorNode, HostNode, MeshView, ProcNode, job_mesh
from jobs.web.access import signed_in
from jobs.web.hosts_tab import number_in

# Beyond so many procs the tree holds those that are not well, and the first of the others.
MOST_PROCS_IN_TREE = 100
_WELL = frozenset({"up", "ended", "alive", "running", "stopped"})


@dataclass(frozen=True, slots=True)
class Branch:
    """A host of the tree, with those of its procs that are shown."""

    host: HostNode
    number: int
    procs: list[tuple[str, ProcNode]]
    hidden: int


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """The tab as it stands now."""
    return render(request, "jobs/_mesh.html", mesh_context(actor, slug, job_id, request.GET))


def mesh_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """All that the tab's templates read; `query` may choose an attempt."""
    found = job_mesh(actor, slug, job_id, number_in(query, "attempt"))
    branches = _branches(found)
    return {
        "slug": slug,
        "job_id": job_id,
        "mesh": found,
        "branches": branches,
        "hidden_hosts": len(found.hosts) - len(branches),
        "mesh_summary": _summary(found),
        "failures": sum(change.is_failure for change in found.changes),
    }


def _branches(found: MeshView) -> list[Branch]:
    room = MOST_PROCS_IN_TREE - sum(not _is_well(p) for host in found.hosts for p in host.procs)
    branches = []
    for number, host in enumerate(found.hosts):
        shown = []
        for place, proc in enumerate(host.procs):
            if _is_well(proc) and room <= 0:
                continue
            room -= _is_well(proc)
            shown.append((f"{number}-{place}", proc))
        hidden = len(host.procs) - len(shown) + host.left_out
        # Where there are many, the grid tells of those that are well.
        if shown or not hidden or host.told not in _WELL:
            branches.append(Branch(host, number, shown, hidden))
    return branches


def _is_well(proc: ProcNode) -> bool:
    return proc.told in _WELL and all(actor.told in _WELL for actor in proc.actors)


def _summary(found: MeshView) -> str:
    """In words what the grid shows in colours."""
    procs = [proc for host in found.hosts for proc in host.procs]
    actors = [actor for proc in procs for actor in proc.actors]
    counts = (
        ("host", len(found.hosts) + found.left_out),
        ("proc", len(procs) + sum(host.left_out for host in found.hosts)),
        ("actor", len(actors) + sum(proc.left_out for proc in procs)),
    )
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts]
    nodes: list[HostNode | ProcNode | ActorNode] = [*found.hosts, *procs, *actors]
    states = [node.told for node in nodes]
    bad = [state for state in ("unreachable", "dead", "poisoned", "failed") if state in states]
    trouble = ", ".join(f"{states.count(state)} {state}" for state in bad)
    return f"{', '.join(parts)}: {trouble or 'all well'}"
