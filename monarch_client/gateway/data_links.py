"""The local sockets of a session: each connection becomes a link through the portal.

Monarch connects to one of them, callers of node streams to the other (`node_links`). While the
portal is away, connections of Monarch are accepted and held: its own redial, which would be refused
otherwise and pause for seconds, goes on at the moment that the way is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from monarch_client.gateway.dialing import MESSAGE_BYTES, Dialer, FinalRefusalError
from monarch_client.gateway.session_stream import RefusedError, SessionStream
from monarch_client.gateway.tls_stream import TlsStream

PATH = "/gateway/v1/link"
# The worker that Monarch attaches to; it routes to all others.
RANK = 0
WORKER = "worker"
_AGAIN_S = 0.5
# A node whose process is stopped accepts connections and then sends nothing.
_HANDSHAKE_S = 10.0


class SilentError(OSError):
    """A worker or node that accepts a link and sends nothing."""


class LocalConnection(asyncio.StreamReaderProtocol):
    """A local connection, with the event of its end, which reading would find too late."""

    def __init__(self, serve: Serve) -> None:
        self.is_gone = asyncio.Event()
        super().__init__(asyncio.StreamReader(limit=MESSAGE_BYTES), self._begin)
        self._serve = serve

    def eof_received(self) -> bool | None:
        """Note that the program closed the connection."""
        self.is_gone.set()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end of the connection."""
        self.is_gone.set()
        super().connection_lost(error)

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._serve(self, reader, writer)


Serve = Callable[
    [LocalConnection, asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]
]


class DataLinks:
    """The links of a session. Each has the lowest free number, and a generation of its own."""

    def __init__(
        self, dialer: Dialer, stream: SessionStream, folder: Path, first_generation: int
    ) -> None:
        self._dialer = dialer
        self._stream = stream
        self._folder = folder
        self._generation = first_generation
        self.kind = WORKER
        self._used: dict[int, asyncio.StreamWriter] = {}
        stream.on_away = self.cut

    async def probe(self) -> None:
        """Open a link and close it. RefusedError: the worker does not answer."""
        try:
            remote = await self._open(0)
        except (OSError, WebSocketException, FinalRefusalError) as error:
            raise RefusedError(reason_of(error)) from error
        try:
            tls = await self.secured(remote)
        except (OSError, WebSocketException) as error:
            raise RefusedError(reason_of(error)) from error
        tls.abort()

    async def listen(self, listener: socket.socket) -> asyncio.AbstractServer:
        """Serve the connections of a listening socket."""
        loop = asyncio.get_running_loop()
        return await loop.create_unix_server(lambda: LocalConnection(self.serve), sock=listener)

    def cut(self) -> None:
        """Close the connections of all links, so that Monarch opens them again."""
        for writer in self._used.values():
            writer.transport.abort()

    async def serve(
        self,
        local: LocalConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Carry the bytes of one local connection until either side ends."""
        with self.numbered(writer) as link:
            try:
                remote = await unless(local.is_gone, self._open(link))
                if remote is not None:
                    await self.carry(await self.secured(remote), reader, writer)
            except (OSError, WebSocketException, FinalRefusalError):
                pass  # Monarch opens the link again

    @contextlib.contextmanager
    def numbered(self, writer: asyncio.StreamWriter) -> Iterator[int]:
        """Yield a free number for the link of a local connection, which is closed at the end."""
        link = next(n for n in range(len(self._used) + 1) if n not in self._used)
        self._used[link] = writer
        try:
            yield link
        finally:
            del self._used[link]
            writer.transport.abort()

    async def open_once(self, link: int, rank: int, kind: str) -> ClientConnection:
        """Open a link's way. RefusedError, TimeoutError; OSError, WebSocketException."""
        self._generation += 1
        dial = await self._stream.request(
            "link", link=link, generation=self._generation, rank=rank, kind=kind
        )
        return await self._dialer.dial(PATH, str(dial["token"]))

    async def secured(self, remote: ClientConnection) -> TlsStream:
        """Return the TLS of an open way. OSError, WebSocketException: there is none."""
        tls = TlsStream(remote, self._folder)
        try:
            await asyncio.wait_for(tls.handshake(), _HANDSHAKE_S)
        except asyncio.TimeoutError as error:
            tls.abort()
            raise SilentError(f"it sends nothing for {_HANDSHAKE_S:g} s") from error
        except BaseException:
            tls.abort()
            raise
        return tls

    async def carry(
        self, tls: TlsStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry bytes both ways until one side ends."""
        ways = [
            asyncio.create_task(self._send(reader, tls)),
            asyncio.create_task(self._receive(tls, writer)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            tls.abort()
            writer.transport.abort()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _open(self, link: int) -> ClientConnection:
        """Open the link's way through the portal, as soon as there is one."""
        while True:
            with contextlib.suppress(TimeoutError, RefusedError):
                return await self.open_once(link, RANK, self.kind)
            await asyncio.sleep(_AGAIN_S)

    async def _send(self, reader: asyncio.StreamReader, tls: TlsStream) -> None:
        while data := await reader.read(MESSAGE_BYTES):
            await tls.send(data)
            self._stream.note_progress()

    async def _receive(self, tls: TlsStream, writer: asyncio.StreamWriter) -> None:
        while data := await tls.receive():
            writer.write(data)
            await writer.drain()
            self._stream.note_progress()


def reason_of(error: Exception) -> str:
    """Return why a link ended: the head's reason if it gave one."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.reason:
        return error.rcvd.reason
    return str(error) or type(error).__name__


async def unless(
    gone: asyncio.Event, opening: Coroutine[Any, Any, ClientConnection]
) -> ClientConnection | None:
    """Return the opened connection; None if the program closed its own meanwhile."""
    opened = asyncio.create_task(opening)
    left = asyncio.create_task(gone.wait())
    try:
        await asyncio.wait({opened, left}, return_when=asyncio.FIRST_COMPLETED)
        return opened.result() if opened.done() else None
    finally:
        left.cancel()
        opened.cancel()
