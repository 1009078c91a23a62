"""The addresses that plain functions answer, described to OpenAPI as if they were views of DRF.

Streams, downloads and the runners' endpoint need no DRF; readers of the description, and tests
of the API by it, need them all. Nothing here ever answers a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.logs.log_inputs import DownloadQuery, StreamQuery
from monarch_client.wire.attempts import FramesAnswer, StoredCode

Endpoint = tuple[str, str, str, Any]


class AttemptTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer mpa_...`, checked by the action that takes the frames."""


class AttemptTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The description of attempts' tokens in OpenAPI."""

    target_class = AttemptTokenAuthentication
    name = "attempt_token"

    def get_security_definition(self, auto_schema: Any) -> Any:
        """Return the scheme of a bearer token in the Authorization header."""
        return build_bearer_security_scheme_object("Authorization", "Bearer", "mpa_...")


class LogStream(PortalView):
    """`/projects/{slug}/jobs/{id}/logs/stream`."""

    tag = "logs"

    @extend_schema(
        operation_id="log_stream",
        parameters=[
            StreamQuery,
            OpenApiParameter(
                "Last-Event-ID",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="The id of the last event seen; goes before `after` and `tail`.",
            ),
        ],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            **problems(400, 401, 404, 429, 503),
        },
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Stream lines and changes as server-sent events, until the job has ended."""
        raise NotImplementedError


class LogDownload(PortalView):
    """`/projects/{slug}/jobs/{id}/logs/download`."""

    tag = "logs"

    @extend_schema(
        operation_id="log_download",
        parameters=[DownloadQuery],
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            (200, "application/gzip"): OpenApiTypes.BINARY,
            **problems(400, 401, 404),
        },
    )
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Download the whole log as text, as it is by now."""
        raise NotImplementedError


class Frames(PortalView):
    """`/attempts/{id}/frames`."""

    tag = "attempts"
    authentication_classes: Any = (AttemptTokenAuthentication,)

    @extend_schema(
        operation_id="frames_push",
        request={"application/x-ndjson": OpenApiTypes.BINARY},
        responses={200: FramesAnswer, **problems(400, 401, 403, 404, 410, 413)},
    )
    def post(self, request: Request, attempt_id: int) -> Response:
        """Accept a runner's reports about its attempt, one JSON object a line."""
        raise NotImplementedError


class Code(PortalView):
    """`/attempts/{id}/code`."""

    tag = "attempts"
    authentication_classes: Any = (AttemptTokenAuthentication,)

    @extend_schema(
        operation_id="code_store",
        parameters=[
            OpenApiParameter("tree", str, required=True, description="The generation's name.")
        ],
        request={"application/gzip": OpenApiTypes.BINARY},
        responses={200: StoredCode, **problems(400, 401, 403, 404, 410, 413, 422, 507)},
    )
    def put(self, request: Request, attempt_id: int) -> Response:
        """Store synchronized code as a tar.gz, for the next attempt of the job."""
        raise NotImplementedError


_JOB = "/api/v1/projects/<slug:slug>/jobs/<int:job_id>"
_OF_FUNCTIONS: tuple[tuple[str, str, type[PortalView]], ...] = (
    (f"{_JOB}/logs/stream", "GET", LogStream),
    (f"{_JOB}/logs/download", "GET", LogDownload),
    ("/api/v1/attempts/<int:attempt_id>/frames", "POST", Frames),
    ("/api/v1/attempts/<int:attempt_id>/code", "PUT", Code),
)


def with_functions(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    """Return the endpoints that drf-spectacular found, and these."""
    return [*endpoints, *(_endpoint(*each) for each in _OF_FUNCTIONS)]


def _endpoint(route: str, method: str, view: type[PortalView]) -> Endpoint:
    return re.sub(r"<\w+:(\w+)>", r"{\1}", route), route, method, view.as_view()
