"""The API described by itself: OpenAPI, its page, and the JSON Schema of a job. All public."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.methods import only
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from monarch_client.spec import json_schema


class PublicView(PortalView):
    """The base of views whose answers are public documentation: no sign-in."""

    tag = "description"
    authentication_classes = ()
    permission_classes = (AllowAny,)


class JobSchemaView(PublicView):
    """`/schema/job`."""

    @extend_schema(operation_id="job_schema", responses={200: OpenApiTypes.OBJECT, **problems()})
    def get(self, request: Request) -> Response:
        """Return the JSON Schema of a job specification, for editors."""
        return Response(json_schema())


class OpenApiView(PublicView):
    """`/openapi`."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        """Return the OpenAPI 3 description of this API."""
        return Response(_generated())


def _generated() -> dict[str, Any]:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return schema


@only("GET", "HEAD")
def docs_view(request: HttpRequest) -> HttpResponse:
    """Show the page to read and try the API on. Its script is a file: no inline code."""
    return render(request, "api/docs.html")
