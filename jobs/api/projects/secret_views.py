"""The secrets of a project: set, listed by name, deleted. No address answers with a value."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.secrets import delete_secret, set_secret
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import page_of, problems
from jobs.api.base.text_field import TextField
from jobs.readers.secret_list import secret_list, secret_view


class SecretSerializer(serializers.Serializer[Any]):
    """One secret, without its value."""

    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    updated_at = serializers.DateTimeField()
    updated_by = serializers.CharField()
    is_masked = serializers.BooleanField(help_text="Long enough to be masked in logs.")


class SecretBody(serializers.Serializer[Any]):
    """A secret to set."""

    value = TextField(trim_whitespace=False, allow_blank=True, write_only=True)


class SecretListView(PortalView):
    """`/projects/{slug}/secrets`."""

    tag = "secrets"

    @extend_schema(
        operation_id="secret_list",
        responses={200: page_of(SecretSerializer), **problems(401, 403, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Names, and who set them when; by name. Takes the role member."""
        rows = SecretSerializer(secret_list(self.actor, self.project()), many=True).data
        return Response({"results": rows, "next": None, "previous": None})


class SecretDetailView(PortalView):
    """`/projects/{slug}/secrets/{name}`."""

    tag = "secrets"

    @extend_schema(
        operation_id="secret_set",
        request=SecretBody,
        responses={200: SecretSerializer, **problems(400, 401, 403, 404, 409, 422, 503)},
    )
    def put(self, request: Request, slug: str, name: str) -> Response:
        """Make it, or give it another value. Takes the role maintainer."""
        project = self.project()
        value = self.parsed(SecretBody, request.data)["value"]
        secret = set_secret(self.actor, project, name, value)
        return Response(SecretSerializer(secret_view(secret)).data)

    @extend_schema(operation_id="secret_delete", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Remove it. Jobs that name it fail at their start."""
        delete_secret(self.actor, self.project(), name)
        return Response(status=204)
