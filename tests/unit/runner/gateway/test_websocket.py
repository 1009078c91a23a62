"""The WebSocket client, against the server of the `websockets` library."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection, serve

from monarch_client.runner.gateway.websocket import (
    MAX_MESSAGE_BYTES,
    PING,
    ClosedError,
    Message,
    RefusedError,
    WebSocket,
    WebSocketError,
    frame_of,
    masked,
)
from tests.each_case import check_each

Serve = Callable[[ServerConnection], Awaitable[None]]


def talk(handler: Serve, speak: Callable[[WebSocket], Awaitable[None]], path: str = "/") -> None:
    """Open a stream to a server with `handler`, and let `speak` use it."""

    async def both() -> None:
        async with serve(
            handler, "127.0.0.1", 0, compression=None, process_request=_admit
        ) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stream = WebSocket(reader, writer)
            try:
                await stream.open(f"127.0.0.1:{port}", path, {"Authorization": "Bearer t"})
                await speak(stream)
                await stream.close()
            finally:
                stream.abort()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    asyncio.run(asyncio.wait_for(both(), 20))


def _admit(connection: ServerConnection, request: object) -> object:
    if connection.request is not None and connection.request.path == "/refused":
        return connection.respond(403, "no")
    return None


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


def test_messages_of_every_length_arrive_as_they_were_sent() -> None:
    async def speak(stream: WebSocket) -> None:
        for size in (0, 1, 125, 126, 65535, 65536, 256 * 1024):
            content = os.urandom(size)
            await stream.send_binary(content)
            assert await stream.receive() == Message(is_text=False, content=content)
        await stream.send_text("Grüße")
        assert await stream.receive() == Message(is_text=True, content="Grüße".encode())

    talk(echo, speak)


def test_a_message_in_parts_is_joined_and_pings_between_them_are_answered() -> None:
    async def handler(connection: ServerConnection) -> None:
        async def parts() -> object:
            for part in ("one, ", "two, ", "three"):
                yield part
                await (await connection.ping())

        await connection.send(parts())

    async def speak(stream: WebSocket) -> None:
        assert await stream.receive() == Message(is_text=True, content=b"one, two, three")

    talk(handler, speak)


def test_a_pong_ends_silence() -> None:
    async def speak(stream: WebSocket) -> None:
        await asyncio.sleep(0)
        before = stream._heard_at
        await stream.ping()
        await stream.send_binary(b"x")
        await stream.receive()
        assert stream._heard_at > before

    talk(echo, speak)


def test_a_refusal_and_a_close_are_reported_with_their_codes() -> None:
    async def closing(connection: ServerConnection) -> None:
        await connection.close(4001, "enough")

    async def speak(stream: WebSocket) -> None:
        with pytest.raises(ClosedError, match="4001 enough") as caught:
            await stream.receive()
        assert caught.value.code == 4001

    talk(closing, speak)
    with pytest.raises(RefusedError) as refused:
        talk(closing, speak, "/refused")
    assert refused.value.status == 403


def test_a_server_that_breaks_the_protocol_is_left() -> None:
    """Feed raw frames to a stream: none of them may be taken for a message."""
    too_large = b"\x82\x7f" + (MAX_MESSAGE_BYTES + 1).to_bytes(8, "big")
    frames = {
        "masked": frame_of(PING, b"", b"abcd"),
        "too large": too_large,
        "reserved bits": b"\xf2\x00",
        "a continuation of nothing": b"\x80\x01x",
        "a text within a text": b"\x01\x01x\x01\x01y",
        "an unknown kind": b"\x8b\x00",
        "an end in the middle": b"\x82\x05abc",
    }

    def check(name: str) -> None:
        async def read() -> None:
            reader = asyncio.StreamReader()
            reader.feed_data(frames[name])
            reader.feed_eof()
            await WebSocket(reader, None).receive()

        with pytest.raises(WebSocketError):
            asyncio.run(read())

    check_each(frames, check)


def test_masking_is_its_own_inverse() -> None:
    for size in (0, 1, 3, 4, 5, 1000):
        content, key = os.urandom(size), os.urandom(4)
        hidden = masked(content, key)
        assert hidden == bytes(byte ^ key[index % 4] for index, byte in enumerate(content))
        assert masked(hidden, key) == content
