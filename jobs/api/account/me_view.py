"""The caller: the user behind the token or session, and how pages show times to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.accounts.set_time_format import set_time_format
from jobs.api.base.answers import answer_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.models.user import ZONE_LIMIT
from jobs.readers.project_list import me
from jobs.statuses import HourFormat
from monarch_client.wire.account import Me


class MeBody(serializers.Serializer[Any]):
    """The caller's settings to change; what is left out does not change."""

    time_zone = TextField(
        required=False,
        allow_blank=True,
        max_length=ZONE_LIMIT,
        help_text="Such as Europe/Berlin. Empty: that of the browser.",
    )
    hour_format = ChoiceField(
        choices=HourFormat.choices,
        required=False,
        allow_blank=True,
        help_text="12 or 24. Empty: as the browser's language has it.",
    )


class MeView(PortalView):
    """`/me`."""

    tag = "account"

    @extend_schema(operation_id="me", responses={200: Me, **problems(401)})
    def get(self, request: Request) -> Response:
        """Show the user behind the token or session, and their projects."""
        return answer_with(me(self.actor))

    @extend_schema(
        operation_id="me_change",
        request=MeBody,
        responses={200: Me, **problems(400, 401, 403, 413, 415, 422)},
    )
    def patch(self, request: Request) -> Response:
        """Set the time zone and the hours in which pages show times to you."""
        user = set_time_format(self.actor, **self.parsed(MeBody, request.data))
        return answer_with(me(replace(self.actor, user=user)))
