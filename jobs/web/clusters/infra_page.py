"""The infrastructure page: clouds, why some cannot be used, and free GPUs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, project_for
from jobs.readers.infra import infra
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page. What is not known yet is added as soon as it is."""
    project = project_for(actor, slug)
    context = {"project": project, "nav": "infra", "places": infra()}
    return render_page(request, actor, "infra/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the part of the page that changes."""
    project_for(actor, slug)
    return render(request, "infra/_places.html", {"places": infra()})
