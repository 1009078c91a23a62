"""Folders that jobs need, sent once and named by their content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.store_upload import store_upload
from jobs.api.base.answers import answer_with
from jobs.api.base.authentication import WITH_DRIVERS
from jobs.api.base.parsers import UnreadParser
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.permissions import Verb, require
from jobs.readers.upload import upload_for, upload_view
from monarch_client.wire.jobs import Upload

CHUNK_BYTES = 64 * 1024
MEDIA_TYPES = ("application/gzip", "application/x-gzip", "application/octet-stream")


class UploadListView(PortalView):
    """`/projects/{slug}/uploads`."""

    authentication_classes: Any = WITH_DRIVERS

    tag = "uploads"

    # The body is read as a stream, never parsed.
    parser_classes: Any = (UnreadParser,)

    @extend_schema(
        operation_id="upload_create",
        request={"application/gzip": OpenApiTypes.BINARY},
        responses={201: Upload, **problems(401, 403, 404, 413, 415, 422, 507)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Store a tar.gz. Sending the same content again changes nothing."""
        project = self.project()
        require(self.actor, Verb.UPLOAD, project)
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type not in MEDIA_TYPES:
            raise UnsupportedMediaType(media_type, f"Send a tar.gz as {MEDIA_TYPES[0]}.")
        upload = store_upload(self.actor, project, _chunks(request))
        place = reverse("api:upload", args=[slug, upload.digest])
        return answer_with(upload_view(upload), 201, {"Location": place})


class UploadDetailView(PortalView):
    """`/projects/{slug}/uploads/{digest}`."""

    authentication_classes: Any = WITH_DRIVERS

    tag = "uploads"

    @extend_schema(operation_id="upload_get", responses={200: Upload, **problems(401, 404)})
    def get(self, request: Request, slug: str, digest: str) -> Response:
        """Report whether the project has this content, so that it need not be uploaded again."""
        return answer_with(upload_for(self.actor, slug, digest))


def _chunks(request: Request) -> Iterator[bytes]:
    stream = request.stream
    while stream is not None and (chunk := stream.read(CHUNK_BYTES)):
        yield chunk
