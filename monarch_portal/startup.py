"""Check the database before the web process serves requests."""

from __future__ import annotations

import asyncio
from typing import Any

from jobs.actions.accounts.releases import why_not_to_start
from jobs.api.base.body_limit import Application, Refusal, refuse
from jobs.errors import DatabaseUnavailableError


class Startup:
    """An ASGI application that refuses to start on the database of a newer release.

    A server without the lifespan protocol starts all the same: there requests are refused.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._may_serve = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the server's own messages, and pass requests on."""
        if scope["type"] == "lifespan":
            await self._start(receive, send)
        elif why := await self._why_not():
            error = DatabaseUnavailableError
            await refuse(send, Refusal(error.http_status, error.code, why))
        else:
            await self._application(scope, receive, send)

    async def _start(self, receive: Any, send: Any) -> None:
        await receive()
        if why := await self._why_not():
            await send({"type": "lifespan.startup.failed", "message": why})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _why_not(self) -> str:
        """Return the reason of `why_not_to_start`; a good result is kept."""
        why = "" if self._may_serve else await asyncio.to_thread(why_not_to_start)
        self._may_serve = not why
        return why
