"""Serves CSS, scripts and icons from this process: found by WhiteNoise, answered without a thread.

WhiteNoise's own middleware is synchronous, which would send every request through a thread, and
answers with an iterator that ASGI must copy anyway. The files are small and in the page cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

Sync = Callable[[HttpRequest], HttpResponseBase]
Async = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def static_files(get_response: Sync | Async) -> Sync | Async:
    """Middleware that answers what lies below STATIC_URL and passes on the rest."""
    files = StaticFiles()
    if iscoroutinefunction(get_response):

        async def in_loop(request: HttpRequest) -> HttpResponseBase:
            return files.answer(request) or await cast(Async, get_response)(request)

        return in_loop

    def in_thread(request: HttpRequest) -> HttpResponseBase:
        return files.answer(request) or cast(Sync, get_response)(request)

    return in_thread


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise's search, headers and conditional answers, with a plain response."""

    def add_files(self, root: str, prefix: str | None = None) -> None:
        """Skip the directory of collected files where nothing has been collected."""
        if root != str(settings.STATIC_ROOT) or Path(root).is_dir():
            super().add_files(root, prefix=prefix)

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The file that the request's path names; None if it names none."""
        path = request.path_info
        file: Any = self.find_file(path) if self.autorefresh else self.files.get(path)
        if file is None:
            return None
        found = file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as opened:
                content = opened.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
