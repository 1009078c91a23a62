"""The token of an attempt in a request of its runner."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.exceptions import NotAuthenticated


def token_of_attempt(request: HttpRequest) -> str:
    """Return the token of the request's header. NotAuthenticated: there is none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        error = NotAuthenticated("Send the attempt's token.")
        error.auth_header = 'Bearer realm="mportal-attempt"'  # type: ignore[attr-defined]
        raise error
    return token.strip()
