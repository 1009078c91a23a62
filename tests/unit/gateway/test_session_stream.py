"""The control stream of a session while the job's head node is away."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from monarch_client.gateway.dialing import Dialer
from monarch_client.gateway.session_stream import LostError, SessionStream

WELCOME = {"op": "welcome", "session": 1, "secret": "s", "away_limit_s": 0.3}


def events_of(*messages: dict[str, Any]) -> tuple[list[str], LostError, list[str]]:
    """Return what a stream reports after these messages, its end, and what it sends."""
    events: list[str] = []
    sent: list[str] = []

    async def answer(connection: ServerConnection) -> None:
        for message in (WELCOME, *messages):
            await connection.send(json.dumps(message))
        with suppress(ConnectionClosed):
            while True:
                sent.append(json.loads(await connection.recv())["op"])

    async def run() -> LostError:
        async with serve(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            dialer = Dialer(f"http://127.0.0.1:{port}")
            stream = SessionStream(dialer, "t", lambda event, **_fields: events.append(event))
            with pytest.raises(LostError) as caught:
                await asyncio.wait_for(stream.run(), 20)
            return caught.value

    return events, asyncio.run(run()), sent


def test_a_session_whose_head_stays_away_is_lost_at_the_limit() -> None:
    events, error, sent = events_of({"op": "mesh"}, {"op": "head_away"}, {"op": "head_away"})
    assert events[:3] == ["session", "mesh", "head_away"]
    assert "head node is not connected" in str(error)
    # The event loop fires a timer up to a clock tick early.
    assert 0.29 < error.away_s < 10
    assert sent == ["close"]


def test_a_head_that_is_back_ends_the_wait_for_it() -> None:
    close = {"op": "close", "detail": "ended"}
    events, error, _ = events_of({"op": "head_away"}, {"op": "mesh"}, close)
    assert events[:4] == ["session", "head_away", "mesh", "head_back"]
    assert str(error) == "ended"
