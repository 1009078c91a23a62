"""X-Request-ID: an id for each request, in its answer and in the audit entries it causes."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from jobs.audit.request_context import in_request
from monarch_client.version import __version__

_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def request_id_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Take the caller's id if it is harmless, else make one. Answers also name the version."""

    def answer(request: HttpRequest) -> HttpResponse:
        request_id = _id_of(request)
        # For lines that Django logs about the answer, when all middleware has ended.
        request.request_id = request_id  # type: ignore[attr-defined]
        with in_request(request_id, _address_of(request)):
            return _mark(get_response(request), request_id)

    return answer


def _id_of(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    return given if _ACCEPTED.match(given) else uuid.uuid4().hex


def _address_of(request: HttpRequest) -> str:
    return request.META.get("REMOTE_ADDR") or ""


def _mark(response: HttpResponse, request_id: str) -> HttpResponse:
    response.headers["X-Request-ID"] = request_id
    response.headers["X-Mportal-Version"] = __version__
    return response
