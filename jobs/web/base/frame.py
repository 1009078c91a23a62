"""The frame of every page of a signed-in user: their projects and the current one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from jobs.ground.disk_space import shortage
from jobs.models import Project
from jobs.permissions import Actor, Verb, may
from jobs.readers.project_list import project_list, project_view
from jobs.web.base import pages
from jobs.web.base.documents import documentation_url
from jobs.web.base.news import SEEN, news
from monarch_client.version import __version__
from monarch_client.wire import projects as wire

LAST_PROJECT = "last_project"


@dataclass(frozen=True, slots=True)
class Frame:
    """The top bar. `project` is None on pages that belong to none."""

    username: str
    projects: list[wire.Project]
    project: wire.Project | None
    may_submit: bool
    administers: bool  # the installation
    shortage: str  # why nothing new begins just now; "" as a rule
    docs_url: str  # of the documentation; "" if there is none
    has_news: bool  # that the user has not seen
    version: str = __version__

    @property
    def project_pages(self) -> list[pages.PageLink]:
        """The menu of the project."""
        return pages.project_pages(self.project) if self.project else []

    @property
    def project_settings(self) -> list[pages.PageLink]:
        """The tabs of the project's settings."""
        return pages.project_settings(self.project) if self.project else []

    @property
    def pages_of_all_projects(self) -> list[pages.PageLink]:
        """The pages about all projects of the user."""
        return pages.pages_of_all_projects()

    @property
    def account_pages(self) -> list[pages.PageLink]:
        """The pages of the user's own account."""
        return pages.account_pages()

    @property
    def administration(self) -> list[pages.PageLink]:
        """The tabs of the administration; none if the user does not administer."""
        return pages.administration() if self.administers else []


def frame_of(request: HttpRequest, actor: Actor, project: Project | None) -> Frame:
    """Return the frame for one page; remember `project` as the one to come back to."""
    projects = project_list(actor)
    if project is not None and request.session.get(LAST_PROJECT) != project.slug:
        request.session[LAST_PROJECT] = project.slug
    return Frame(
        username=actor.user.get_username(),
        projects=projects,
        project=_current(request, actor, project, projects),
        may_submit=project is not None and may(actor, Verb.SUBMIT_JOB, project),
        administers=actor.reaches_beyond_projects,
        shortage=shortage(),
        docs_url=documentation_url(),
        has_news=news().digest != request.COOKIES.get(SEEN, ""),
    )


def _current(
    request: HttpRequest, actor: Actor, project: Project | None, projects: list[wire.Project]
) -> wire.Project | None:
    """Return the project of the page, which may be an archived one; else the last one."""
    slug = project.slug if project else request.session.get(LAST_PROJECT)
    found = next((row for row in projects if row.slug == slug), None)
    return project_view(actor, project) if found is None and project is not None else found


def render_page(
    request: HttpRequest,
    actor: Actor,
    template: str,
    context: dict[str, Any],
    *,
    project: Project | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page in its frame, or redirect to the new address of a renamed project."""
    match = request.resolver_match
    old = match.kwargs.get("slug", project.slug) if match and project else None
    if match and project and old != project.slug and request.method == "GET":
        # Not a permanent redirect: another project may take the old name.
        place = reverse(match.view_name, kwargs={**match.kwargs, "slug": project.slug})
        query = request.META["QUERY_STRING"]
        return redirect(f"{place}?{query}" if query else place)
    frame = frame_of(request, actor, project)
    return render(request, template, {**context, "frame": frame}, status=status)
