"""The overview: one project's, and that of all projects of a user, which is the first page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from jobs.ground import clock
from jobs.models import Project
from jobs.permissions import Actor, Verb, may, project_for
from jobs.readers.job_filter import has_jobs
from jobs.readers.overview import overview
from jobs.readers.project_list import project_list
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.overview.gpu_bars import gpu_rows
from monarch_client.wire.overview import ProjectNow

# Of the session: by project ("" for all) the last look of this visit, and of the visit before.
VISITS = "overview_visits"
# A visit is over when nothing was looked at for so long.
VISIT_ENDS = timedelta(minutes=30)
# The last look is stored again after so long, not with every request.
STORED_EVERY = timedelta(minutes=1)

# Of the page of all projects; the list of projects has the others.
MOST_PROJECTS = 7

# The parts that change, by the ids of their elements.
PARTS = ("running", "waiting", "failures", "gpus", "idle", "money", "runs", "projects")


@require_safe
@signed_in
def landing(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show all projects; the only project of a user, or how to join one."""
    projects = project_list(actor)
    if not projects:
        return render_page(request, actor, "projects/none.html", {})
    if len(projects) == 1:
        return redirect("web:project", slug=projects[0].slug)
    context = overview_context(actor, None, since=_last_visit(request, ""))
    return render_page(request, actor, "overview/page.html", context)


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show one project."""
    project = project_for(actor, slug)
    context = overview_context(actor, project, since=_last_visit(request, project.slug))
    context["may_submit"] = may(actor, Verb.SUBMIT_JOB, project)
    context["is_new"] = not has_jobs(actor, project)
    return render_page(request, actor, "overview/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the parts of a project's page that change."""
    context = overview_context(actor, project_for(actor, slug))
    return render(request, "overview/_live.html", context)


@require_safe
@signed_in
def all_live(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Render the parts of the page of all projects that change."""
    return render(request, "overview/_live.html", overview_context(actor, None))


def overview_context(
    actor: Actor, project: Project | None, since: datetime | None = None
) -> dict[str, Any]:
    """Return the context of the page and of its parts."""
    found = overview(actor, project, since)
    budget, forecast = found.spending.budget_usd, found.spending.forecast_usd
    return {
        "project": project,
        "nav": "overview" if project else "",
        "now": found,
        "is_visit": since is not None,
        "gpu_rows": gpu_rows(found.gpus),
        "budget_percent": _percent(found.spending.month_usd, budget),
        "forecast_percent": _percent(forecast, budget),
        "is_over": budget is not None and forecast > budget,
        "busiest": sorted(found.projects, key=_busyness)[:MOST_PROJECTS],
        "parts": [f"overview/_{name}.html" for name in PARTS],
    }


def _busyness(row: ProjectNow) -> tuple[int, str]:
    """Return the key that sorts the projects with the most to see first."""
    return -(row.running + row.waiting + row.failed), row.project


def _percent(part: Any, whole: Any) -> float | None:
    return None if not whole else float(100 * part / whole)


def _last_visit(request: HttpRequest, key: str) -> datetime | None:
    """Return the end of the visit before this one; None on the first visit."""
    visits: dict[str, list[str]] = request.session.get(VISITS, {})
    now = clock.now()
    last, before = (visits.get(key) or ["", ""])[:2]
    if last and now - datetime.fromisoformat(last) > VISIT_ENDS:
        before = last
    if not last or now - datetime.fromisoformat(last) > STORED_EVERY:
        request.session[VISITS] = {**visits, key: [now.isoformat(), before]}
    return datetime.fromisoformat(before) if before else None
