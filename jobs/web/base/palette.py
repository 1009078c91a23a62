"""The command palette, which a page loads when it is first opened: jobs, pages and actions by name.

The menus show the same pages (`jobs/web/base/pages.py`). Actions are those of the page itself: its
script finds their buttons.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.models import Project
from jobs.permissions import Actor, project_for
from jobs.readers.found_jobs import found_jobs
from jobs.web.base import pages
from jobs.web.base.access import signed_in
from jobs.web.base.frame import Frame, frame_of

# Of a search, in characters.
MOST_TEXT = 100


@require_safe
@signed_in
def palette(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Render the dialog and its entries; `project` is that of the page."""
    frame = frame_of(request, actor, _project_of(request, actor))
    context = {"entries": json.dumps(_entries(frame)), "project": frame.project}
    return render(request, "_palette.html", context)


@never_cache
@require_safe
@signed_in
def palette_jobs(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Return the jobs of all projects that `q` finds, those of `project` before others."""
    text = _query(request, "q")[:MOST_TEXT]
    found = found_jobs(actor, text, _project_of(request, actor)) if text else []
    jobs = [
        {**asdict(job), "href": reverse("web:job", args=[job.project, job.id])} for job in found
    ]
    return JsonResponse({"jobs": jobs})


def _project_of(request: HttpRequest, actor: Actor) -> Project | None:
    slug = _query(request, "project")
    return project_for(actor, slug) if slug else None


def _query(request: HttpRequest, key: str) -> str:
    """Return a value of the address without NUL, which PostgreSQL does not accept."""
    return request.GET.get(key, "").replace("\0", "")


def _entries(frame: Frame) -> list[dict[str, str]]:
    found = []
    if frame.project:
        slug = frame.project.slug
        shown = [*pages.pages_behind_buttons(frame.project), *frame.project_pages]
        found += [_entry(slug, link) for link in shown]
        found += [_entry(f"Settings of {slug}", link) for link in frame.project_settings]
    found += [
        {"group": "Projects", "label": each.slug, "href": reverse("web:project", args=[each.slug])}
        for each in frame.projects
    ]
    found.append({"group": "Pages", "label": "Overview", "href": reverse("web:landing")})
    found += [_entry("Pages", link) for link in frame.pages_of_all_projects]
    found += [_entry("Account", link) for link in frame.account_pages]
    found += [_entry("Help", link) for link in pages.help_pages(frame.docs_url)]
    found += [_entry("Administration", link) for link in frame.administration]
    return found


def _entry(group: str, link: pages.PageLink) -> dict[str, str]:
    return {"group": group, "label": link.label, "href": link.address}
