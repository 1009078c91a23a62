"""Middleware of the portal's own."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

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
