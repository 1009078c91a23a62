"""Answers of REST: from the dataclasses of `monarch_client.wire` to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from monarch_client.wire.jobs import Array, Job
from monarch_client.wire.page import Page

J = TypeVar("J", bound=Job)

# The places of US$, as `monarch_client.wire.values.Usd` describes them.
_PLACES = 6


class AnswerEncoder(JSONEncoder):
    """The encoder of DRF, with US$ in six places."""

    def default(self, obj: Any) -> Any:
        """Return `obj` as a value that JSON has."""
        return f"{obj:.{_PLACES}f}" if isinstance(obj, Decimal) else super().default(obj)


class AnswerRenderer(JSONRenderer):
    """JSON as all views write it."""

    encoder_class = AnswerEncoder


def answer_with(
    value: Any,
    status: int = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a dataclass of `monarch_client.wire` as the response of a view."""
    body = msgspec.to_builtins(value, builtin_types=(Decimal,))
    return Response(body, status, headers=dict(headers or {}))


def page_with(
    rows: list[Any],
    *,
    next: str | None = None,  # noqa: A002 - the name in the envelope
    previous: str | None = None,
) -> Response:
    """Return a list in its envelope; `next` and `previous` are its cursors."""
    return answer_with(Page(results=rows, next=next, previous=previous))


def addressed(job: J, request: Request) -> J:
    """Return a job with the address of its page, on the host that the caller used."""
    return replace(job, url=request.build_absolute_uri(job.url))


def addressed_array(array: Array, request: Request) -> Array:
    """Return an array with the addresses of its page and of those of its jobs."""
    url = request.build_absolute_uri(array.url)
    return replace(array, url=url, jobs=[addressed(job, request) for job in array.jobs])
