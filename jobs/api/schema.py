"""Pieces from which the OpenAPI description of the views is written."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, inline_serializer
from rest_framework import serializers

from jobs.api.serializers import ProblemSerializer

TITLE = "Monarch portal"


def page_of(serializer: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The envelope of every list: `next` and `previous` are opaque, null at the ends."""
    name = serializer.__name__.removesuffix("Serializer") + "Page"
    fields: dict[str, Any] = {
        "results": serializer(many=True),
        "next": serializers.CharField(allow_null=True),
        "previous": serializers.CharField(allow_null=True),
    }
    return inline_serializer(name, fields)


def problems(*statuses: int) -> dict[Any, OpenApiResponse]:
    """The errors that an operation may answer with."""
    answer = OpenApiResponse(ProblemSerializer)
    return {(status, "application/problem+json"): answer for status in statuses}
