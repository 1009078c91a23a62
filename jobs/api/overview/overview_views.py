"""The overview of one project, or of all projects of the caller, over REST."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.readers.overview import overview
from monarch_client.wire.overview import Overview


class OverviewQuery(serializers.Serializer[Any]):
    """The begin of what is new."""

    since = serializers.DateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Count what ended since then, at most seven days back. Default: a day ago.",
    )


class OverviewBase(PortalView):
    """A view of an overview."""

    tag = "overview"

    def since(self) -> datetime | None:
        """Return the begin of what is new."""
        since: datetime | None = self.parsed(OverviewQuery, self.request.query_params)["since"]
        return since


class OverviewView(OverviewBase):
    """`/overview`."""

    @extend_schema(
        operation_id="overview_all",
        parameters=[OverviewQuery],
        responses={200: Overview, **problems(400, 401)},
    )
    def get(self, request: Request) -> Response:
        """Show all your projects: jobs, failures, GPUs, idle machines, costs, schedules."""
        return answer_with(overview(self.actor, since=self.since()))


class ProjectOverviewView(OverviewBase):
    """`/projects/{slug}/overview`."""

    @extend_schema(
        operation_id="overview",
        parameters=[OverviewQuery],
        responses={200: Overview, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Show one project: jobs, failures, GPUs, idle machines, costs, schedules."""
        return answer_with(overview(self.actor, self.project(), self.since()))
