"""Serve the portal below a path of a proxy, such as `/portal` of https://host/portal.

It is a setting, the path of MPORTAL_URL, and no header: nothing that a client sends changes where
links and cookies of others lead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings


class SubPath:
    """An ASGI application that puts every request below the portal's path.

    A proxy passes the whole path on. Requests that come without it (health checks, nodes that
    reach the portal beside the proxy) are answered as well.
    """

    def __init__(self, application: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Set `root_path` as ASGI has it: `path` begins with it."""
        root: str = settings.FORCE_SCRIPT_NAME or ""
        if root and scope["type"] == "http":
            path: str = scope["path"]
            if path == root:
                path = f"{root}/"
            elif not path.startswith(f"{root}/"):
                path = root + path
            scope = {**scope, "root_path": root, "path": path}
        await self._application(scope, receive, send)
