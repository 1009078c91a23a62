"""A project's usage over REST: by person, job or day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.ground import clock
from jobs.readers.usage import MOST_DAYS, usage
from jobs.statuses import UsageBy
from monarch_client.wire.money import Usage


class UsageQuery(serializers.Serializer[Any]):
    """The days (UTC) to add up, and how to group them."""

    by = ChoiceField(choices=UsageBy.choices, required=False, default=UsageBy.USER)

    def get_fields(self) -> dict[str, Any]:
        """Return the fields; `from` is a keyword of Python and can be no attribute."""
        first = serializers.DateField(
            required=False,
            allow_null=True,
            default=None,
            help_text="The first day; else the first of the month of the last one.",
        )
        last = serializers.DateField(
            required=False, allow_null=True, default=None, help_text="The last day; else today."
        )
        return {"from": first, "to": last, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return both days, in their order."""
        today = clock.now().date()
        last: date = attrs["to"] or today
        if last > (latest := today + timedelta(MOST_DAYS)):
            message = f"{last} is too far ahead; the last possible day is {latest}."
            raise serializers.ValidationError({"to": message})
        first: date = attrs["from"] or last.replace(day=1)
        if first > last:
            raise serializers.ValidationError({"from": f"{first} is after {last}."})
        if (last - first).days >= MOST_DAYS:
            message = f"At most {MOST_DAYS} days; those are {(last - first).days + 1}."
            raise serializers.ValidationError({"from": message})
        return {"first_day": first, "last_day": last, "by": UsageBy(attrs["by"])}


class UsageView(PortalView):
    """`/projects/{slug}/usage`."""

    tag = "projects"

    @extend_schema(
        operation_id="usage",
        parameters=[UsageQuery],
        responses={200: Usage, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Show what the project has used: US$, node hours, GPU hours."""
        project = self.project()
        query = self.parsed(UsageQuery, request.query_params)
        return answer_with(usage(self.actor, project, **query))
