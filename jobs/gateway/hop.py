"""Hops: a connection that arrives at one gateway process and belongs to another one.

Every process accepts every connection. Sessions and links are where the head of their attempt is
connected, and this one relays to there. The bearer token is checked there as well, so a hop adds no
rights; its header prevents a second hop, and reports the client's address.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection as AnyConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.frames import EXTERNAL_CLOSE_CODES
from websockets.http11 import Request, Response

from jobs.gateway.admission import HOP_HEADER, hop_header
from jobs.gateway.listeners import (
    CLOSE_TIMEOUT_S,
    LARGEST_MESSAGE,
    PING_S,
    QUEUE,
    WRITE_LIMIT,
    Connection,
)

# A process that hangs is not waited for long: the head is at another one within seconds.
_OPEN_TIMEOUT_S = 2.0


async def hop(connection: Connection, request: Request, address: str) -> Response | None:
    """Open the same stream at another process; its answer if it refuses, else None."""
    try:
        far = await connect(
            f"ws://{address}{request.path}",
            additional_headers={
                "Authorization": request.headers["Authorization"],
                HOP_HEADER: hop_header(connection.client),
            },
            compression=None,
            proxy=None,
            open_timeout=_OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            # A data link may be silent: its control stream notices a lost process.
            ping_interval=PING_S,
            ping_timeout=None,
            max_size=LARGEST_MESSAGE,
            max_queue=QUEUE,
            write_limit=WRITE_LIMIT,
        )
    except InvalidStatus as error:
        text = (error.response.body or b"").decode(errors="replace")
        return connection.respond(HTTPStatus(error.response.status_code), text)
    except (OSError, WebSocketException, asyncio.TimeoutError):
        text = "The gateway process of this job does not answer. Try again.\n"
        response = connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, text)
        response.headers["Retry-After"] = "1"
        return response
    connection.handle = lambda near: _relay(near, far)
    connection.on_unopened = far.transport.abort
    return None


async def _relay(near: Connection, far: ClientConnection) -> None:
    """Pass messages in both directions until one side closes; then close the other likewise."""
    near.keep_alive(ends_silence=False)
    ways = {asyncio.create_task(_pass(near, far)), asyncio.create_task(_pass(far, near))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await asyncio.gather(_close_like(near, far), _close_like(far, near))


async def _pass(source: AnyConnection, target: AnyConnection) -> None:
    with suppress(ConnectionClosed):
        async for message in source:
            await target.send(message)


async def _close_like(connection: AnyConnection, other: AnyConnection) -> None:
    code = other.close_code if other.close_code in EXTERNAL_CLOSE_CODES else 1001
    await connection.close(code, other.close_reason or "")
