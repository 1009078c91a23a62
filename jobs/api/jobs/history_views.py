"""The history of a job: its attempts with stages and workers, and its events."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import page_with
from jobs.api.base.authentication import WITH_DRIVERS
from jobs.api.base.inputs import AttemptListQuery, EventQuery
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import checked
from jobs.models import Job
from jobs.readers.job_history import job_history
from jobs.readers.job_page import attempts_of
from monarch_client.wire.attempts import Attempt
from monarch_client.wire.jobs import Event
from monarch_client.wire.page import Page


class AttemptListView(PortalView):
    """`/projects/{slug}/jobs/{id}/attempts`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="attempt_list",
        parameters=[AttemptListQuery],
        responses={200: Page[Attempt], **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the job's attempts with stages and workers, newest first."""
        wanted = checked(AttemptListQuery, request.query_params)["workers"]
        job = self.job()
        number = _newest(job) if wanted == "newest" else 0
        attempts = attempts_of(job, workers_of=None if wanted == "all" else number)
        return page_with(attempts)


def _newest(job: Job) -> int:
    return job.attempts.order_by("-number").values_list("number", flat=True).first() or 0


class EventListView(PortalView):
    """`/projects/{slug}/jobs/{id}/events`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="event_list",
        parameters=[EventQuery],
        responses={200: Page[Event], **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the job's events, oldest first. `next` is the `after` of the next page."""
        query = self.parsed(EventQuery, request.query_params)
        events = job_history(self.actor, slug, job_id, **query)
        full = len(events) == query["limit"]
        following = str(events[-1].id) if full else None
        return page_with(events, next=following)
