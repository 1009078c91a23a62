"""The front door: on to the project last looked at, or a page that says what to do without one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, project_for
from jobs.readers.project_list import project_list
from jobs.web.base.access import signed_in
from jobs.web.base.frame import LAST_PROJECT, render_page


@require_safe
@signed_in
def landing(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the jobs of the last project, or of the first; else how to join one."""
    slugs = [project.slug for project in project_list(actor)]
    if not slugs:
        return render_page(request, actor, "projects/none.html", {})
    last = request.session.get(LAST_PROJECT)
    return redirect("web:jobs", slug=last if last in slugs else slugs[0])


@require_safe
@signed_in
def project(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Redirect a project's address to its jobs."""
    return redirect("web:jobs", slug=project_for(actor, slug).slug)
