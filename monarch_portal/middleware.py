"""Middleware of the portal's own."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

Respond = Callable[[HttpRequest], HttpResponseBase]


def fixed_headers(get_response: Respond) -> Respond:
    """Send the policy against foreign scripts, and keep browsers and proxies from storing answers.

    A view may set either header itself. Static files are answered before.
    """
    fixed = {
        "Content-Security-Policy": settings.CONTENT_SECURITY_POLICY,
        "Cache-Control": "no-store",
    }

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        for name, value in fixed.items():
            response.headers.setdefault(name, value)
        return response

    return respond


class CompressedAnswers(GZipMiddleware):
    """Compress pages and JSON, which have CSRF tokens that differ and a random length (BREACH).

    Streams compress each part by themselves; log lines and files are sent as they are.
    """

    types = ("text/html", "application/json")

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress the response if its reader accepts that and it is worth it."""
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in self.types:
            return response
        return super().process_response(request, response)
