"""WebSocket connections to the portal's gateway: their options, and the refusals of the portal."""

from __future__ import annotations

import asyncio
import http.client
import socket
import urllib.request
from urllib.parse import urlsplit, urlunsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from monarch_client.runner.delivery.portal_address import open_connection
from monarch_client.runner.delivery.portal_proof import UnprovedError
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

    def __init__(self, portal_url: str, token: str = "") -> None:
        self._url, self._token = portal_url.rstrip("/"), token
        parts = urlsplit(portal_url.rstrip("/"))
        self._is_secure = parts.scheme == "https"
        scheme = "wss" if self._is_secure else "ws"
        self._base = urlunsplit((scheme, parts.netloc, parts.path, "", ""))
        # The authorities that REST trusts.
        self._tls = httpx.create_ssl_context() if self._is_secure else None

    async def dial_proved(self, path: str, credential: str) -> ClientConnection:
        """Open a connection to the portal once it has proved itself on this connection.

        Over https its certificate is the proof. UnprovedError: the credential was not sent.
        """
        if self._is_secure or not self._token:
            return await self.dial(path, credential)
        return await self.dial(path, credential, await asyncio.to_thread(self._proved_socket))

    async def dial(
        self, path: str, credential: str, proved: socket.socket | None = None
    ) -> ClientConnection:
        """Open a connection. FinalRefusalError; OSError, WebSocketException: try again."""
        try:
            return await connect(
                self._base + path,
                additional_headers={"Authorization": f"Bearer {credential}"},
                user_agent_header=f"mportal/{__version__}",
                compression=None,
                ssl=self._tls,
                sock=proved,
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

    def _proved_socket(self) -> socket.socket:
        """Return a connection on which the portal has proved that it knows the user's token."""
        proxy = _proxy_of(self._url)
        if proxy is not None and urlsplit(proxy).scheme != "http":
            raise UnprovedError(
                f"{self._url} is reached through {urlsplit(proxy).scheme}, where it cannot prove "
                "itself. Use https, or add its host to NO_PROXY"
            )
        try:
            connection = open_connection(self._url, self._token, DIAL_S, proxy)
        except http.client.HTTPException as error:
            raise OSError(f"the portal does not answer: {error!r}") from error
        # The answer was read whole, so the connection holds no bytes of it any more.
        proved: socket.socket = connection.sock
        connection.sock = None
        proved.setblocking(False)
        return proved


def _proxy_of(url: str) -> str | None:
    """Return the proxy through which REST reaches a portal over http, by the environment."""
    if urllib.request.proxy_bypass(urlsplit(url).netloc.rpartition("@")[2]):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get("http") or proxies.get("all")


def _detail(error: InvalidStatus) -> str:
    """Return what the portal answered to people."""
    text = (error.response.body or b"").decode(errors="replace").strip()
    return text[:300] or f"the portal answered {error.response.status_code}"
