"""Terminals of browsers: this process is the program's end of their sessions.

It opens the session, has the head sign a key, and opens the shell as a laptop does, over
connections to itself. So a terminal has the limits, the accounting and the end of every session;
unlike a laptop's, its bytes are readable here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from jobs.gateway.listeners import Connection
from jobs.gateway.messages import Size, decode_size
from jobs.ground.messages import MalformedMessageError
from monarch_client.gateway import certificates
from monarch_client.gateway.data_links import DataLinks, reason_of
from monarch_client.gateway.dialing import Dialer, FinalRefusalError
from monarch_client.gateway.node_stream import NodeStreamError, answer_in
from monarch_client.gateway.session_stream import LostError, RefusedError, SessionStream
from monarch_client.gateway.tls_stream import TlsStream
from monarch_client.runner.gateway.links import NODE
from monarch_client.runner.node_streams.messages import (
    DATA,
    EXIT,
    MAX_BYTES,
    SIZE,
    TAKEN,
    WINDOW_BYTES,
    MessageError,
    end_of_shell,
    pack,
    taken_bytes,
    unpacked,
)

log = logging.getLogger(__name__)

_FIRST_MESSAGE_S = 10.0
# Until the job's head node is connected; a browser that waits for longer opens another one.
_AWAY_LIMIT_S = 60.0
_NAME = "xterm-256color"
_TROUBLE = (
    OSError,
    WebSocketException,
    FinalRefusalError,
    RefusedError,
    TimeoutError,
    NodeStreamError,
)


class LocalDialer(Dialer):
    """A maker of connections to this process, whose sockets `connect` makes."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        super().__init__("http://gateway")
        self._connect = connect

    async def dial_proved(self, path: str, credential: str) -> ClientConnection:
        """Open a connection: this process needs no proof of itself."""
        return await self.dial(path, credential)

    async def dial(
        self, path: str, credential: str, proved: socket.socket | None = None
    ) -> ClientConnection:
        """Open a connection."""
        return await super().dial(path, credential, proved or self._connect())


async def serve_terminal(
    connect: Callable[[], socket.socket], ticket: str, browser: Connection
) -> None:
    """Serve a browser whose ticket is valid, until its shell ends or one side leaves."""
    with tempfile.TemporaryDirectory(prefix="mportal-terminal-") as folder:
        terminal = _Terminal(LocalDialer(connect), ticket, browser, Path(folder))
        try:
            await terminal.run()
        except ConnectionClosed:
            pass  # the browser has left
        except _TROUBLE as error:
            with suppress(ConnectionClosed):
                await browser.send(json.dumps({"error": _sentence(error)}))


class _Terminal:
    """One terminal and its session."""

    def __init__(self, dialer: Dialer, ticket: str, browser: Connection, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        self._stream = SessionStream(
            dialer, ticket, lambda *_args, **_fields: None, away_limit_s=_AWAY_LIMIT_S
        )
        self._links = DataLinks(dialer, self._stream, folder, 0)
        self._free = WINDOW_BYTES
        self._has_room = asyncio.Event()

    async def run(self) -> None:
        """Open the session and the shell; pass bytes until one side ends."""
        async with asyncio.timeout(_FIRST_MESSAGE_S):
            first = _size(await self._browser.recv())
        session = asyncio.create_task(self._stream.run())
        shell = asyncio.create_task(self._talk(first))
        leaving = asyncio.create_task(self._browser.wait_closed())
        try:
            done, _ = await asyncio.wait(
                {session, shell, leaving}, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
        except LostError as error:
            raise RefusedError(str(error)) from error
        finally:
            shell.cancel()
            leaving.cancel()
            await self._stream.close()
            session.cancel()
            await asyncio.gather(session, shell, leaving, return_exceptions=True)

    async def _talk(self, first: Size) -> None:
        csr = await asyncio.to_thread(certificates.make_request, self._folder)
        signed = await self._stream.request("sign", csr=csr)
        certificates.install(self._folder, signed["leaf"], signed["ca"])
        remote = await self._links.open_once(0, first.rank, NODE)
        tls = await self._links.secured(remote)
        size = {"name": _NAME, "rows": first.rows, "columns": first.columns}
        await tls.send(json.dumps({"open": "shell", "terminal": size}).encode() + b"\n")
        typing = asyncio.create_task(self._from_browser(tls))
        showing = asyncio.create_task(self._to_browser(_Buffer(tls)))
        try:
            await asyncio.wait({typing, showing}, return_when=asyncio.FIRST_COMPLETED)
            if typing.done():
                typing.result()  # a malformed message ends the terminal
            await showing
        finally:
            typing.cancel()
            showing.cancel()
            tls.abort()
            await asyncio.gather(typing, showing, return_exceptions=True)

    async def _to_browser(self, buffer: _Buffer) -> None:
        answer_in(await buffer.line() + b"\n")
        await self._browser.send(json.dumps({"open": True}))
        async for kind, content in buffer.messages():
            if kind == DATA:
                await self._browser.send(content)
            elif kind == TAKEN:
                self._free += taken_bytes(content)
                self._has_room.set()
            elif kind == EXIT:
                await self._browser.send(json.dumps({"exit": end_of_shell(content)}))
                return
        raise RefusedError("The connection to the node was lost, and the shell was ended.")

    async def _from_browser(self, tls: TlsStream) -> None:
        """Pass on what is typed, which is binary, and sizes of the terminal, which are text."""
        async for message in self._browser:
            if isinstance(message, str):
                size = _size(message)
                await tls.send(pack(SIZE, json.dumps([size.rows, size.columns]).encode()))
                continue
            for at in range(0, len(message), MAX_BYTES):
                piece = message[at : at + MAX_BYTES]
                while self._free < len(piece):
                    self._has_room.clear()
                    await self._has_room.wait()
                self._free -= len(piece)
                await tls.send(pack(DATA, piece))


class _Buffer:
    """The bytes of a stream, read as a line and then as messages."""

    def __init__(self, tls: TlsStream) -> None:
        self._tls = tls
        self._bytes = bytearray()

    async def line(self) -> bytes:
        """Return the first line. RefusedError: the stream has ended before."""
        while b"\n" not in self._bytes and len(self._bytes) < MAX_BYTES:
            if not await self._more():
                raise RefusedError("The node has closed the connection.")
        line, _, rest = bytes(self._bytes).partition(b"\n")
        self._bytes = bytearray(rest)
        return line

    async def messages(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield messages until the stream ends. MessageError."""
        while True:
            while (found := unpacked(self._bytes)) is not None:
                yield found
            if not await self._more():
                return

    async def _more(self) -> bool:
        with suppress(ConnectionClosed):
            data = await self._tls.receive()
            self._bytes += data
            return bool(data)
        return False


def _size(message: str | bytes) -> Size:
    """Return a browser's message of its size. RefusedError."""
    try:
        return decode_size(message)
    except MalformedMessageError as error:
        raise RefusedError("The browser's message is malformed.") from error


def _sentence(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "The job's node gave no answer. Try again."
    if isinstance(error, MessageError):
        return "The node sent what is no terminal's."
    return f"{reason_of(error).rstrip('.')}."
