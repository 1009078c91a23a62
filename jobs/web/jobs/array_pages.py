"""The page of an array: how many of its jobs stand where, each of them, and what to do to all."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.actions.jobs.arrays import cancel_array, rerun_failed
from jobs.permissions import Actor, project_for
from jobs.readers.job_array import array_for, job_array, misses_dependencies
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Show the whole page."""
    context = _context(actor, slug, array_id)
    return render_page(request, actor, "arrays/page.html", context, project=context["project"])


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Render the parts of it that change."""
    return render(request, "arrays/_live.html", _context(actor, slug, array_id))


@require_POST
@signed_in
def cancel(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """End what has not ended and stay on the page."""
    array = array_for(actor, slug, array_id)
    back = reverse("web:array", args=[slug, array_id])
    return attempt_action(request, lambda: cancel_array(actor, array), back=back)


@require_POST
@signed_in
def rerun(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Run again what failed and stay on the page."""
    array = array_for(actor, slug, array_id)
    back = reverse("web:array", args=[slug, array_id])
    drop = "drop_deleted" in request.POST
    return attempt_action(request, lambda: rerun_failed(actor, array, drop_deleted=drop), back=back)


def _context(actor: Actor, slug: str, array_id: int) -> dict[str, Any]:
    found = job_array(actor, slug, array_id)
    return {
        "array": found,
        "misses_dependencies": found.can_rerun_failed and misses_dependencies(found.id),
        "project": project_for(actor, slug),
        "nav": "jobs",
    }
