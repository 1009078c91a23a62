"""WebSocket connections to the portal's gateway: their options, and the refusals of the portal."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from monarch_client.version import __version__

MESSAGE_BYTES = 256 * 1024
_LARGEST_MESSAGE = 1024 * 1024
# TCP repeats its first packet after 1, 3 and 7 s: one of them soon follows a network's return.
DIAL_S = 8.0
_CLOSE_S = 1.0
# The portal knows the session or token and does not accept it; others may be a proxy's or pass.
_FINAL = frozenset({401, 403, 410})


class FinalRefusalError(Exception):
    """A refusal of the portal that trying again does not change."""


class Dialer:
    """A maker of connections to the gateway of one portal."""

    def __init__(self, portal_url: str) -> None:
        parts = urlsplit(portal_url.rstrip("/"))
        self._is_secure = parts.scheme == "https"
        scheme = "wss" if self._is_secure else "ws"
        self._base = urlunsplit((scheme, parts.netloc, parts.path, "", ""))
        # The authorities that REST trusts.
        self._tls = httpx.create_ssl_context() if self._is_secure else None

    async def dial(self, path: str, credential: str) -> ClientConnection:
        """Open a connection. FinalRefusalError; OSError, WebSocketException: try again."""
        try:
            return await connect(
                self._base + path,
                additional_headers={"Authorization": f"Bearer {credential}"},
                user_agent_header=f"mportal/{__version__}",
                compression=None,
                ssl=self._tls,
                open_timeout=DIAL_S,
                close_timeout=_CLOSE_S,
                # The session stream has a watch of its own, which closes the links as well.
                ping_interval=None,
                max_size=_LARGEST_MESSAGE,
                max_queue=4,
                write_limit=MESSAGE_BYTES,
            )
        except InvalidStatus as error:
            if error.response.status_code in _FINAL:
                raise FinalRefusalError(_detail(error)) from error
            raise


def _detail(error: InvalidStatus) -> str:
    """Return what the portal answered to people."""
    text = (error.response.body or b"").decode(errors="replace").strip()
    return text[:300] or f"the portal answered {error.response.status_code}"
