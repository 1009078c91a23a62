"""Where jobs can run: clouds, why some can't be used, and GPUs that are free."""

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
    """The page. What is not known yet comes later, by itself."""
    project = project_for(actor, slug)
    context = {"project": project, "nav": "infra", "places": infra()}
    return render_page(request, actor, "infra/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """The part of the page that changes."""
    project_for(actor, slug)
    return render(request, "infra/_places.html", {"places": infra()})
