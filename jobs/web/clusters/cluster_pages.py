"""The pages of clusters: one project's, and those of all projects with what has no row."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.actions.clusters.strays import take_down_stray
from jobs.actions.clusters.take_down import take_down_cluster
from jobs.actions.jobs.extend import extend_cluster
from jobs.models import Project
from jobs.permissions import Actor, project_for
from jobs.readers.clusters import ROW, cluster_anywhere, cluster_list, cluster_named
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page

EXTENSION_S = 3600


@require_safe
@signed_in
def clusters(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the existing clusters of one project."""
    project = project_for(actor, slug)
    context = _context(actor, project)
    return render_page(request, actor, "clusters/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the parts of that page that change."""
    context = _context(actor, project_for(actor, slug))
    return render(request, "clusters/_live.html", context)


@require_POST
@signed_in
def down(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Take down one of the project's clusters and stay on the page."""
    project = project_for(actor, slug)
    cluster = cluster_named(actor, project, request.POST.get("name", ""))
    return attempt_action(
        request,
        lambda: take_down_cluster(actor, cluster),
        done=f"{cluster.name} is being terminated.",
        back=reverse("web:clusters", args=[slug]),
    )


@require_POST
@signed_in
def extend(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Keep one of the project's clusters that wait for a job an hour from now."""
    project = project_for(actor, slug)
    cluster = cluster_named(actor, project, request.POST.get("name", ""))
    return attempt_action(
        request,
        lambda: extend_cluster(actor, cluster, EXTENSION_S),
        done=f"{cluster.name} waits an hour more.",
        back=reverse("web:clusters", args=[slug]),
    )


@require_safe
@signed_in
def all_clusters(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the existing clusters of all the user's projects; administrators see all clusters."""
    return render_page(request, actor, "clusters/all.html", _context(actor, None))


@require_safe
@signed_in
def all_live(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Render the parts of that page that change."""
    return render(request, "clusters/_live.html", _context(actor, None))


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
        back=reverse("web:all_clusters"),
    )


def _context(actor: Actor, project: Project | None) -> dict[str, Any]:
    rows = cluster_list(actor, project)
    known = [row for row in rows if row.kind == ROW]
    nothing = Decimal(0)
    return {
        "project": project,
        "nav": "clusters" if project else "",
        "rows": known,
        "strays": [row for row in rows if row.kind != ROW],
        "is_admin": actor.reaches_beyond_projects,
        "usd_per_hour": sum((row.usd_per_hour or nothing for row in known), nothing),
        "usd": sum((row.usd or nothing for row in known), nothing),
        "down_url": reverse("web:cluster_down", args=[project.slug])
        if project
        else reverse("web:any_cluster_down"),
    }
