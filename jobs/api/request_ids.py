"""X-Request-ID: a name for each request, in its answer and in every log line it leads to."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from monarch_client.version import __version__

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


class RequestIdMiddleware:
    """Takes the caller's id when it is harmless, else makes one. Answers also tell the version."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        request_id = _begin(request)
        return _mark(self.get_response(request), request_id)

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        request_id = _begin(request)
        return _mark(await self.get_response(request), request_id)


def _begin(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    request_id = given if _ACCEPTED.match(given) else uuid.uuid4().hex
    REQUEST_ID.set(request_id)
    return request_id


def _mark(response: HttpResponse, request_id: str) -> HttpResponse:
    response.headers["X-Request-ID"] = request_id
    response.headers["X-Mportal-Version"] = __version__
    return response
