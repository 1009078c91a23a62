"""What the web process looks at before it serves anybody."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.typing import ASGI3Application

from jobs.actions.releases import why_not_to_start


class Startup:
    """An ASGI application that refuses to start on the database of a newer release."""

    def __init__(self, application: ASGI3Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the server's own messages, and pass everything else on."""
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        await receive()
        if why := await asyncio.to_thread(why_not_to_start):
            await send({"type": "lifespan.startup.failed", "message": why})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
