"""The command palette, which a page loads when it is first opened: jobs, pages and actions by name.

The menus show the same pages (`jobs/web/base/pages.py`). Actions are those of the page itself: its
script finds their buttons.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, project_for
from jobs.web.base import pages
from jobs.web.base.access import signed_in
from jobs.web.base.frame import Frame, frame_of


@require_safe
@signed_in
def palette(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Render the dialog and its entries; `project` is that of the page."""
    slug = request.GET.get("project")
    frame = frame_of(request, actor, project_for(actor, slug) if slug else None)
    entries = json.dumps(_entries(frame))
    context = {"entries": entries, "project": frame.project, "jobs": _jobs(frame)}
    return render(request, "_palette.html", context)


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
    found += [_entry("Administration", link) for link in frame.administration]
    return found


def _entry(group: str, link: pages.PageLink) -> dict[str, str]:
    return {"group": group, "label": link.label, "href": link.address}


def _jobs(frame: Frame) -> dict[str, Any]:
    """Return where the script searches jobs, and the address of a job's page without its number."""
    if frame.project is None:
        return {}
    args = [frame.project.slug]
    return {"search": reverse("api:jobs", args=args), "page": reverse("web:jobs", args=args)}
