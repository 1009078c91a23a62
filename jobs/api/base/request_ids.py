"""X-Request-ID: a name for each request, in its answer and in every log line it leads to."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from monarch_client.version import __version__

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


@sync_and_async_middleware
def request_id_middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    """Takes the caller's id when it is harmless, else makes one. Answers also tell the version."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponse:
            request_id = _begin(request)
            return _mark(await get_response(request), request_id)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponse:
        request_id = _begin(request)
        return _mark(get_response(request), request_id)

    return answer


def _begin(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    request_id = given if _ACCEPTED.match(given) else uuid.uuid4().hex
    REQUEST_ID.set(request_id)
    return request_id


def _mark(response: HttpResponse, request_id: str) -> HttpResponse:
    response.headers["X-Request-ID"] = request_id
    response.headers["X-Mportal-Version"] = __version__
    return response
