"""The streams of overviews: the parts that changed, rendered once for all readers of a project."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from jobs.live.access import Access
from jobs.live.channel import QUEUE_TOPIC, project_topic
from jobs.models import Project
from jobs.permissions import Actor, projects_of
from jobs.web.base.access import actor_of
from jobs.web.base.live import stream_of, stream_of_all
from jobs.web.base.live_parts import PartsWatch
from jobs.web.overview.overview_page import PARTS, overview_context

# However fast jobs change, an overview is rendered once a second at most.
PACE_S = 1.0
# One stream watches no more topics than these.
MOST_TOPICS = 200


@require_GET
def project_stream(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream `/{slug}/overview/stream`."""

    def watch(access: Access, project: Project) -> OverviewWatch:
        return OverviewWatch(access, actor_of(request), project)

    return stream_of(request, slug, "overview", watch)


@require_GET
def all_stream(request: HttpRequest) -> HttpResponseBase:
    """Stream `/settings/overview/stream`: all projects of the reader."""
    return stream_of_all(
        request, "overview", lambda access: OverviewWatch(access, actor_of(request), None)
    )


class OverviewWatch(PartsWatch):
    """A watch over the overview of one project, or of all projects of one reader."""

    pace_s = PACE_S

    def __init__(self, access: Access, actor: Actor, project: Project | None) -> None:
        # Of one project all readers see the same.
        reader = actor.user.pk if project is None else None
        super().__init__(access, ("overview", project.pk if project else None, reader))
        self._actor, self._project = actor, project
        shown = [project.pk] if project else [*projects_of(actor).values_list("pk", flat=True)]
        topics = {project_topic(number) for number in shown}
        # The topic of all jobs says nothing of clusters; they change together with jobs.
        self._topics = topics if len(shown) <= MOST_TOPICS else {QUEUE_TOPIC}

    def topics(self) -> set[str]:
        """Return the topics of the projects; of very many, that of the jobs of all."""
        return self._topics

    def render(self) -> list[str]:
        """Render the parts."""
        context = overview_context(self._actor, self._project)
        return [render_to_string(f"overview/_{name}.html", context) for name in PARTS]
