"""Django's middleware, run in the event loop where none of it waits.

Django sends each synchronous middleware through a thread, on the way in and on the way out: some
fifteen turns for each request, which take longer than many answers. What these do is set a header
or an attribute; those that may ask the database or read a body still do so in a thread.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
from csp.utils import build_policy
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin

# Of these no body is read to find a form's token.
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

_JSON = ("application/json", "application/problem+json")


@cache
def _policy() -> str:
    return build_policy()


class InLoop:
    """Mixed in before a middleware of Django's that never waits on its way in.

    `waits` tells of a request whether it may on its way out.
    """

    async def __acall__(self: Any, request: HttpRequest) -> HttpResponseBase:
        """What Django calls in asynchronous mode."""
        found: HttpResponseBase | None = None
        if hasattr(self, "process_request"):
            found = self.process_request(request)
        response: HttpResponseBase = found or await self.get_response(request)
        if not hasattr(self, "process_response"):
            return response
        if self.waits(request):
            response = await sync_to_async(self.process_response)(request, response)
        else:
            response = self.process_response(request, response)
        return response

    def waits(self, _request: HttpRequest) -> bool:
        """Whether its way out may ask the database."""
        return False


class Security(InLoop, SecurityMiddleware):
    """Headers and redirects for HTTPS."""


class FrameOptions(InLoop, XFrameOptionsMiddleware):
    """X-Frame-Options."""


class ContentSecurity(InLoop, CSPMiddleware):
    """Content-Security-Policy. That of what is no page is made once: no view changes it."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add the header, unless the view has."""
        if not response.get("Content-Type", "").startswith(_JSON):
            return super().process_response(request, response)
        response.setdefault("Content-Security-Policy", _policy())
        return response


class NotStored(InLoop, MiddlewareMixin):
    """Middleware that adds `Cache-Control: no-store` to pages and answers.

    Views that say something else keep it. Static files are answered before.
    """

    def process_response(
        self, _request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Keep browsers and proxies from storing what they show."""
        response.setdefault("Cache-Control", "no-store")
        return response


class Sessions(InLoop, SessionMiddleware):
    """Sessions are read when somebody asks for them, and saved on the way out."""

    def waits(self, request: HttpRequest) -> bool:
        """Only a session that was touched may be saved, or found to be gone."""
        return bool(request.session.accessed or request.session.modified)


class Common(InLoop, CommonMiddleware):
    """Slashes at the end of addresses, and Content-Length."""


class Csrf(InLoop, CsrfViewMiddleware):
    """Forms carry a token; for it their body is parsed, which may take a while."""

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if self.async_mode:
            # Django takes it from the instance, and adapts to what it finds.
            self.process_view = self._process_view_in_loop  # type: ignore[assignment,method-assign]

    async def _process_view_in_loop(
        self, request: HttpRequest, view: Any, arguments: Any, options: Any
    ) -> HttpResponseBase | None:
        check = super().process_view
        if request.method in _SAFE_METHODS or getattr(view, "csrf_exempt", False):
            return check(request, view, arguments, options)
        return await sync_to_async(check)(request, view, arguments, options)


class Authentication(InLoop, AuthenticationMiddleware):
    """Who it is, is looked up when somebody asks."""


class Messages(InLoop, MessageMiddleware):
    """Messages of one page shown on the next."""

    def waits(self, request: HttpRequest) -> bool:
        """They may be kept in the session."""
        messages = getattr(request, "_messages", None)
        return messages is not None and bool(messages.used or messages.added_new)
