"""Gateway sessions over REST: request a ticket, list who is attached, end a session."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.attempts.open_gateway import (
    CodePurpose,
    Purpose,
    ShellPurpose,
    end_session,
    open_session,
)
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.models.gateway_session import TICKET_LIFE
from jobs.readers.gateway_sessions import gateway_sessions, versions_of
from jobs.statuses import GatewayKind
from monarch_client.wire.gateway import GatewaySession, GatewayTicket
from monarch_client.wire.page import Page

# Below the portal's address.
SESSION_PATH = "/gateway/v1/session"
_LARGEST = 2**31 - 1
_LONGEST_COMMAND, _LONGEST_FORWARD, _MOST_FORWARDS = 2000, 200, 32


class SessionBody(serializers.Serializer[Any]):
    """The kind and purpose of a session."""

    kind = ChoiceField(
        choices=GatewayKind.choices,
        required=False,
        default=GatewayKind.ATTACH,
        help_text="`attach`: the workers. `ssh`: shells and ports of nodes. `sync`: code for them.",
    )
    rank = WholeNumberField(
        required=False, default=0, min_value=0, max_value=_LARGEST, help_text="The node, of `ssh`."
    )
    command = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=_LONGEST_COMMAND,
        help_text="Its command, for the audit log.",
    )
    forwards = serializers.ListField(
        child=serializers.CharField(max_length=_LONGEST_FORWARD),
        required=False,
        default=list,
        max_length=_MOST_FORWARDS,
        help_text="The ports that it forwards, for the audit log.",
    )


def _purpose_of(body: Mapping[str, Any]) -> Purpose | None:
    if body["kind"] == GatewayKind.SYNC:
        return CodePurpose()
    if body["kind"] != GatewayKind.SSH:
        return None
    return ShellPurpose(body["rank"], body["command"], tuple(body["forwards"]))


class GatewaySessionListView(PortalView):
    """`/projects/{slug}/jobs/{id}/gateway-sessions`."""

    @extend_schema(
        operation_id="gateway_sessions",
        responses={200: Page[GatewaySession], **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """List the programs that are attached to a job, then those that were."""
        return page_with(gateway_sessions(self.actor, self.job()))

    @extend_schema(
        operation_id="gateway_session_open",
        request=SessionBody,
        responses={201: GatewayTicket, **problems(400, 401, 403, 404, 409, 415, 429)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Request a session in a running job. Its ticket is valid once, and for a minute."""
        body = self.parsed(SessionBody, request.data)
        session, ticket = open_session(self.actor, self.job(), _purpose_of(body))
        python, torchmonarch = versions_of(session.attempt_id)
        answer = GatewayTicket(
            id=session.pk,
            ticket=ticket,
            expires_in_s=TICKET_LIFE.seconds,
            path=SESSION_PATH,
            python=python,
            torchmonarch=torchmonarch,
        )
        return answer_with(answer, HTTPStatus.CREATED)


class GatewaySessionView(PortalView):
    """`/projects/{slug}/jobs/{id}/gateway-sessions/{session_id}`."""

    @extend_schema(
        operation_id="gateway_session_end",
        responses={204: None, **problems(400, 401, 403, 404)},
    )
    def delete(self, request: Request, slug: str, job_id: int, session_id: int) -> Response:
        """End a session. Its program loses the connection within seconds."""
        end_session(self.actor, self.job(), session_id)
        return Response(status=HTTPStatus.NO_CONTENT)
