"""The secrets of a project: set, listed by name, deleted. No address answers with a value."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.secrets import delete_secret, set_secret
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.readers.secret_list import secret_list, secret_view
from monarch_client.wire.page import Page
from monarch_client.wire.projects import Secret


class SecretBody(serializers.Serializer[Any]):
    """A secret to set."""

    value = TextField(trim_whitespace=False, allow_blank=True, write_only=True)


class SecretListView(PortalView):
    """`/projects/{slug}/secrets`."""

    tag = "secrets"

    @extend_schema(
        operation_id="secret_list",
        responses={200: Page[Secret], **problems(401, 403, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the secrets' names, who set them and when, by name. Requires the role member."""
        return page_with(secret_list(self.actor, self.project()))


class SecretDetailView(PortalView):
    """`/projects/{slug}/secrets/{name}`."""

    tag = "secrets"

    @extend_schema(
        operation_id="secret_set",
        request=SecretBody,
        responses={200: Secret, **problems(400, 401, 403, 404, 409, 422, 503)},
    )
    def put(self, request: Request, slug: str, name: str) -> Response:
        """Make it, or give it another value. Takes the role maintainer."""
        project = self.project()
        value = self.parsed(SecretBody, request.data)["value"]
        secret = set_secret(self.actor, project, name, value)
        return answer_with(secret_view(secret))

    @extend_schema(operation_id="secret_delete", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Remove it. Jobs that name it fail at their start."""
        delete_secret(self.actor, self.project(), name)
        return Response(status=204)
