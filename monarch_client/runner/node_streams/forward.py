"""The service `forward`: connects a stream to a TCP port that this node reaches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.messages import DATA, END, EXIT, MAX_BYTES, receive
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
    has_ended = asyncio.Event()
    inward = asyncio.ensure_future(_to_port(stream, writer, has_ended))
    outward = asyncio.ensure_future(_from_port(reader, stream))
    over = asyncio.ensure_future(has_ended.wait())
    tasks = [inward, outward, over]
    try:
        await asyncio.wait({inward, outward}, return_when=asyncio.FIRST_COMPLETED)
        if outward.done():
            outward.result()
            await asyncio.wait({inward, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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


async def _to_port(
    stream: NodeStream, writer: asyncio.StreamWriter, has_ended: asyncio.Event
) -> None:
    """Read the stream to its own end, which nothing else notices after END."""
    while True:
        kind, content = await receive(stream.reader)
        if kind == DATA:
            writer.write(content)
            await writer.drain()
        elif kind == END:
            has_ended.set()
            if writer.can_write_eof():
                writer.write_eof()


async def _from_port(reader: asyncio.StreamReader, stream: NodeStream) -> None:
    while True:
        content = await reader.read(MAX_BYTES)
        if not content:
            await stream.send(END)
            return
        await stream.send(DATA, content)
