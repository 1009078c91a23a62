"""The head sends no token, not even that of a link, to a portal that has not proved itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from monarch_client.runner.delivery.portal_proof import UnprovedError
from monarch_client.runner.gateway import dialing
from monarch_client.runner.gateway.settings import HeadSettings

ATTEMPT, LINK = "token-of-the-attempt", "token-of-the-link"


def received_by_a_stranger(use: Callable[[HeadSettings], Awaitable[object]]) -> list[str]:
    """Return what a server without a proof receives."""
    received: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            empty = dict.fromkeys(HeadSettings._fields)
            settings = HeadSettings(**{**empty, "portal_url": url, "token": ATTEMPT})
            with pytest.raises(UnprovedError):
                await use(settings)

    asyncio.run(asyncio.wait_for(run(), 20))
    return received


def test_an_unproved_portal_gets_no_token() -> None:
    for use in (dialing.dial_head, lambda settings: dialing.dial_link(settings, LINK)):
        (request,) = received_by_a_stranger(use)
        assert request.startswith("GET /api/v1/proof")
        assert ATTEMPT not in request
        assert LINK not in request
