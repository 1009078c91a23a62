"""The local socket of node streams: each connection becomes a link to a rank that its line names.

A caller sends the opening line of a node stream with a `rank`; the answer is the node's, or
{"error": REASON} if the node is not reached. A stream that breaks is not opened again.
"""

from __future__ import annotations

import asyncio
import json
import socket
from functools import partial
from typing import Any

from websockets.exceptions import WebSocketException

from monarch_client.gateway.data_links import (
    DataLinks,
    LocalConnection,
    SilentError,
    reason_of,
    unless,
)
from monarch_client.gateway.dialing import FinalRefusalError
from monarch_client.gateway.session_stream import RefusedError
from monarch_client.gateway.tls_stream import TlsStream
from monarch_client.runner.gateway.links import NODE

# Longer than a node takes to find that it cannot connect to a port.
_ANSWER_S = 15.0
_TROUBLE = (OSError, TimeoutError, WebSocketException, FinalRefusalError, RefusedError)


async def listen_for_nodes(links: DataLinks, listener: socket.socket) -> asyncio.AbstractServer:
    """Serve the callers of node streams."""
    loop = asyncio.get_running_loop()
    serve = partial(_serve, links)
    return await loop.create_unix_server(lambda: LocalConnection(serve), sock=listener)


async def _serve(
    links: DataLinks,
    local: LocalConnection,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    request: dict[str, Any] = json.loads(await reader.readline() or b"{}")
    with links.numbered(writer) as link:
        rank = 0
        try:
            rank = int(request.pop("rank", 0))
            remote = await unless(local.is_gone, links.open_once(link, rank, NODE))
            if remote is None:
                return
            tls = await links.secured(remote)
            writer.write(await _answer(tls, request))
            await links.carry(tls, reader, writer)
        except _TROUBLE as error:
            if not writer.is_closing():
                writer.write(_line({"error": _sentence(error, rank)}))
                await writer.drain()


async def _answer(tls: TlsStream, request: dict[str, Any]) -> bytes:
    """Send the opening line; return the first bytes of the answer. SilentError."""
    try:
        await tls.send(_line(request))
        return await asyncio.wait_for(tls.receive(), _ANSWER_S)
    except asyncio.TimeoutError as error:
        tls.abort()
        raise SilentError(f"it sends nothing for {_ANSWER_S:g} s") from error
    except BaseException:
        tls.abort()
        raise


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _sentence(error: Exception, rank: int) -> str:
    if isinstance(error, SilentError):
        return f"Node {rank} does not answer."
    if isinstance(error, TimeoutError):
        return "The portal gave no answer."
    return f"The node is not reached: {reason_of(error).rstrip('.')}."
