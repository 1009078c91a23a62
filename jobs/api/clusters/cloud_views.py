"""Credentials of clouds, for administrators of the installation. No answer holds any."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.sharing.clouds import add_cloud, remove_cloud
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.readers.cloud_list import cloud_check, cloud_list
from monarch_client.wire.account import CloudEntry, CloudState, Stored
from monarch_client.wire.page import Page


class CloudBody(serializers.Serializer[Any]):
    """Credentials to store; which fields, depends on the kind."""

    fields_of_kind = serializers.DictField(
        child=serializers.CharField(trim_whitespace=False, allow_blank=True), write_only=True
    )


class CloudListView(PortalView):
    """`/clouds`."""

    tag = "clouds"

    @extend_schema(
        operation_id="cloud_list",
        responses={200: Page[CloudEntry], **problems(401, 403, 409)},
    )
    def get(self, request: Request) -> Response:
        """List the clouds that were added, by kind and name."""
        return page_with(cloud_list(self.actor))


class CloudCheckView(PortalView):
    """`/clouds/check`."""

    tag = "clouds"

    @extend_schema(
        operation_id="cloud_check",
        request=None,
        responses={200: Page[CloudState], **problems(401, 403, 502, 503)},
    )
    def post(self, request: Request) -> Response:
        """Ask SkyPilot which clouds it can use. 503 `still_looking`: ask again in a moment."""
        return page_with(cloud_check(self.actor))


class CloudKindView(PortalView):
    """`/clouds/{kind}`."""

    tag = "clouds"

    @extend_schema(
        operation_id="cloud_add",
        request={
            "application/json": {"type": "object", "additionalProperties": {"type": "string"}}
        },
        responses={200: Stored, **problems(400, 401, 403, 404, 409, 422)},
    )
    def put(self, request: Request, kind: str) -> Response:
        """Store credentials of `aws`, `azure`, `gcp`, `kubernetes`, `lambda` or `slurm`."""
        content = self.parsed(CloudBody, {"fields_of_kind": request.data})["fields_of_kind"]
        return answer_with(Stored(names=add_cloud(self.actor, kind, content)))


class CloudEntryView(PortalView):
    """`/clouds/{kind}/{name}`."""

    tag = "clouds"

    @extend_schema(
        operation_id="cloud_remove", responses={204: None, **problems(401, 403, 404, 409)}
    )
    def delete(self, request: Request, kind: str, name: str) -> Response:
        """Forget these credentials."""
        remove_cloud(self.actor, kind, name)
        return Response(status=204)
