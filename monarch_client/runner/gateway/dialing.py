"""Dial the portal's gateway: open a connection, prove the portal, open a WebSocket on it."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from monarch_client.runner.delivery.portal_address import open_connection, portal_url
from monarch_client.runner.gateway.websocket import WebSocket, WebSocketError

if TYPE_CHECKING:
    from monarch_client.runner.gateway.settings import HeadSettings

HEAD_PATH, LINK_PATH = "/gateway/v1/head", "/gateway/v1/link"
# What a read of a stream takes at most, and the messages that carry it.
CHUNK_BYTES = 256 * 1024
_TIMEOUT_S = 20.0


async def dial_head(settings: HeadSettings) -> WebSocket:
    """Open the control stream, with the attempt's token. WebSocketError or another OSError."""
    url = portal_url(settings.portal_url, settings.portal_file)
    if urlsplit(url).scheme == "https":
        return await _open(url, HEAD_PATH, settings.token)
    loop = asyncio.get_running_loop()
    proved = await loop.run_in_executor(None, _proved_socket, url, settings.token)
    return await _open(url, HEAD_PATH, settings.token, proved)


async def dial_link(settings: HeadSettings, token: str) -> WebSocket:
    """Open a data link with its token.

    The portal does not prove itself: it would need its database, without which links must open. The
    token is valid once, and the link's bytes are TLS with the other end.
    """
    url = portal_url(settings.portal_url, settings.portal_file)
    return await _open(url, LINK_PATH, token)


def _proved_socket(url: str, token: str) -> socket.socket:
    """Return a connection to a portal over http that has proved itself on this connection."""
    try:
        connection = open_connection(url, token, _TIMEOUT_S)
    except http.client.HTTPException as error:
        raise WebSocketError(f"the portal does not answer: {error!r}") from error
    # The response was read whole, so the connection holds no bytes of it any more.
    proved, connection.sock = connection.sock, None
    proved.setblocking(False)
    return proved


async def _open(url: str, path: str, token: str, proved: socket.socket | None = None) -> WebSocket:
    try:
        return await asyncio.wait_for(_connect(url, path, token, proved), _TIMEOUT_S)
    except asyncio.TimeoutError:
        raise WebSocketError(f"the portal gave no answer in {_TIMEOUT_S:g} s") from None


async def _connect(url: str, path: str, token: str, proved: socket.socket | None) -> WebSocket:
    parts = urlsplit(url)
    if proved is not None:
        reader, writer = await asyncio.open_connection(sock=proved, limit=CHUNK_BYTES)
    else:
        is_https = parts.scheme == "https"
        reader, writer = await asyncio.open_connection(
            parts.hostname or "localhost",
            parts.port or (443 if is_https else 80),
            ssl=ssl.create_default_context() if is_https else None,
            limit=CHUNK_BYTES,
        )
    send_at_once(writer)
    stream = WebSocket(reader, writer)
    try:
        host = parts.netloc.rpartition("@")[2]
        await stream.open(host, parts.path + path, {"Authorization": f"Bearer {token}"})
    except BaseException:
        stream.abort()
        raise
    return stream


def send_at_once(writer: asyncio.StreamWriter) -> None:
    """Switch delays off: asyncio does so only where it knows the protocol."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
