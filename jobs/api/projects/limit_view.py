"""The limits of a project over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.set_limits import MOST_MINUTES, MOST_S, set_limits
from jobs.api.base.answers import answer_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.permissions import require_sharing
from jobs.readers.project_limits import project_limits
from monarch_client.wire.projects import ProjectLimits


class LimitsBody(serializers.Serializer[Any]):
    """The limits to change: what is left out does not change, null takes a limit away."""

    max_duration_s = WholeNumberField(
        required=False, allow_null=True, min_value=1, max_value=MOST_S
    )
    max_idle_minutes = WholeNumberField(
        required=False, allow_null=True, min_value=1, max_value=MOST_MINUTES
    )


class LimitsView(PortalView):
    """`/projects/{slug}/limits`."""

    tag = "projects"

    @extend_schema(operation_id="limits_get", responses={200: ProjectLimits, **problems(401, 404)})
    def get(self, request: Request, slug: str) -> Response:
        """Show how long jobs of a project may run, and its clusters be idle."""
        return answer_with(project_limits(self.actor, self.project()))

    @extend_schema(
        operation_id="limits_set",
        request=LimitsBody,
        responses={200: ProjectLimits, **problems(400, 401, 403, 404, 413, 415)},
    )
    def put(self, request: Request, slug: str) -> Response:
        """Set these limits. For administrators of the installation."""
        require_sharing(self.actor)
        project = self.project()
        set_limits(self.actor, project, **self.parsed(LimitsBody, request.data))
        return answer_with(project_limits(self.actor, project))
