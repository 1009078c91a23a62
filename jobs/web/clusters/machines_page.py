"""The machines: what exists, who has it, what is free; of one project, and of all projects."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe

from jobs.actions.clusters.stop import stop_cluster
from jobs.actions.clusters.strays import take_down_stray
from jobs.actions.clusters.take_down import take_down_cluster
from jobs.actions.jobs.extend import extend_cluster
from jobs.live.channel import QUEUE_TOPIC, project_topic
from jobs.models import Cluster, Project
from jobs.permissions import Actor, project_for
from jobs.readers.clusters import ROW, cluster_anywhere, cluster_list, cluster_named
from jobs.readers.infra import infra
from jobs.readers.queue_state import QueueState
from jobs.statuses import ClusterStatus
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page
from jobs.web.base.live import ChangesWatch, stream_of, stream_of_all

EXTENSION_S = 3600
# Changes of all projects' jobs are hints here: the machines are looked at once a second at most.
PACE_S = 1.0


class MachinesWatch(ChangesWatch):
    """A watch over machines."""

    pace_s = PACE_S


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the clusters of one project, and what is free."""
    project = project_for(actor, slug)
    context = _context(actor, project)
    return render_page(request, actor, "machines/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the parts of that page that change."""
    context = _context(actor, project_for(actor, slug))
    return render(request, "machines/_live.html", context)


@require_GET
def stream(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream `/{slug}/machines/stream`: clusters of the project, or jobs of any, changed."""
    return stream_of(
        request,
        slug,
        "machines",
        lambda access, project: MachinesWatch(access, project_topic(project.pk), QUEUE_TOPIC),
    )


@require_safe
@signed_in
def all_page(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the clusters of all the user's projects; administrators see all clusters."""
    return render_page(request, actor, "machines/page.html", _context(actor, None))


@require_safe
@signed_in
def all_live(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Render the parts of that page that change."""
    return render(request, "machines/_live.html", _context(actor, None))


@require_GET
def all_stream(request: HttpRequest) -> HttpResponseBase:
    """Stream `/settings/machines/stream`: jobs of any project changed."""
    return stream_of_all(request, "machines", lambda access: MachinesWatch(access, QUEUE_TOPIC))


@require_safe
def old_address(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Redirect the addresses that the pages of clusters and of infrastructure had."""
    del request
    if slug:
        return redirect("web:machines", slug=slug)
    return redirect("web:all_machines")


@require_POST
@signed_in
def down(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Take down one of the project's clusters and stay on the page."""
    return _change(request, actor, slug, take_down_cluster, "is being terminated.")


@require_POST
@signed_in
def stop(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Stop the machines of one of the project's clusters and keep their disks."""
    return _change(request, actor, slug, stop_cluster, "is being stopped; its disks are kept.")


@require_POST
@signed_in
def extend(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Keep one of the project's clusters that wait for a job an hour from now."""

    def keep(actor: Actor, cluster: Cluster) -> Cluster:
        return extend_cluster(actor, cluster, EXTENSION_S)

    return _change(request, actor, slug, keep, "waits an hour more.")


@require_POST
@signed_in
def any_down(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Take down a cluster by its name alone and stay on the page."""
    name = request.POST.get("name", "")
    cluster = cluster_anywhere(actor, name)
    return attempt_action(
        request,
        lambda: take_down_cluster(actor, cluster) if cluster else take_down_stray(actor, name),
        done=f"{name} is being terminated.",
        back=reverse("web:all_machines"),
    )


def _change(
    request: HttpRequest,
    actor: Actor,
    slug: str,
    action: Callable[[Actor, Cluster], object],
    done: str,
) -> HttpResponse:
    """Do something to the cluster that a form names, and stay on the page."""
    project = project_for(actor, slug)
    cluster = cluster_named(actor, project, request.POST.get("name", ""))
    return attempt_action(
        request,
        lambda: action(actor, cluster),
        done=f"{cluster.name} {done}",
        back=reverse("web:machines", args=[slug]),
    )


def _context(actor: Actor, project: Project | None) -> dict[str, Any]:
    rows = cluster_list(actor, project)
    known = [row for row in rows if row.kind == ROW]
    idle = [row for row in known if row.idle_since is not None]
    nothing = Decimal(0)
    return {
        "project": project,
        "nav": "machines" if project else "",
        "rows": known,
        "has_gpu_use": any(row.gpu_use is not None for row in known),
        "has_actions": any(row.can_down or row.can_extend for row in known),
        "strays": [row for row in rows if row.kind != ROW],
        "is_admin": actor.reaches_beyond_projects,
        "nodes": sum(row.num_nodes for row in known),
        "ending": sum(row.num_nodes for row in known if row.status == ClusterStatus.STOPPING),
        "gpus": sum(row.gpu_count for row in known),
        "usd_per_hour": sum((row.usd_per_hour or nothing for row in known), nothing),
        "idle_usd_per_hour": sum((row.usd_per_hour or nothing for row in idle), nothing),
        "usd": sum((row.usd or nothing for row in known), nothing),
        "places": QueueState(actor).pools(),
        "infras": infra(),
        "down_url": reverse("web:cluster_down", args=[project.slug])
        if project
        else reverse("web:any_cluster_down"),
    }
