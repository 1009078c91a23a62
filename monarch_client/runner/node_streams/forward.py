"""The service `forward`: connects a stream to a TCP port that this node reaches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.caller_input import CallerInput, cancel, complete
from monarch_client.runner.node_streams.messages import DATA, END, EXIT, MAX_BYTES
from monarch_client.runner.node_streams.opening import RefusedError

if TYPE_CHECKING:
    from monarch_client.runner.node_streams.opening import NodeStream

_CONNECT_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 10.0
_LAST_PORT = 65535


async def serve_forward(stream: NodeStream) -> None:
    """Carry bytes between the stream and `host`, `port` of its request, until both ends close."""
    reader, writer = await _connect(stream.request)
    try:
        await stream.accept()
        await _carry(stream, reader, writer)
        # What the port has not taken yet.
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), _CLOSE_TIMEOUT_S)
        await stream.send(EXIT)
    finally:
        writer.transport.abort()


async def _carry(
    stream: NodeStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry bytes until both directions have ended, or the stream is lost."""
    source = CallerInput(stream)
    reading = asyncio.ensure_future(source.read())
    works = [
        asyncio.ensure_future(_to_port(source, writer)),
        asyncio.ensure_future(_from_port(reader, stream)),
    ]
    try:
        await complete(works, reading)
    finally:
        await cancel([*works, reading])


async def _connect(
    request: dict[str, object],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = request.get("host"), request.get("port")
    if not isinstance(host, str) or not isinstance(port, int) or not 0 < port <= _LAST_PORT:
        raise RefusedError("A forward needs a host and a port.")
    try:
        opening = asyncio.open_connection(host, port, limit=MAX_BYTES)
        return await asyncio.wait_for(opening, _CONNECT_TIMEOUT_S)
    except (OSError, UnicodeError, asyncio.TimeoutError) as error:
        why = str(error) or f"no answer in {_CONNECT_TIMEOUT_S:g} s"
        raise RefusedError(f"The node cannot connect to {host}:{port}: {why}.") from error


async def _to_port(source: CallerInput, writer: asyncio.StreamWriter) -> None:
    await source.feed(writer)
    if writer.can_write_eof() and not writer.is_closing():
        writer.write_eof()


async def _from_port(reader: asyncio.StreamReader, stream: NodeStream) -> None:
    while True:
        content = await reader.read(MAX_BYTES)
        if not content:
            await stream.send(END)
            return
        await stream.send(DATA, content)
