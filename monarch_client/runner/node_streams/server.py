"""The server of a node's streams: mutual TLS, the opening line, then one of the services."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING

from monarch_client.runner.base import tls
from monarch_client.runner.node_streams.opening import (
    CHUNK_BYTES,
    NodeStream,
    RefusedError,
    checked_service,
    read_line,
    send_line,
)

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Awaitable, Callable, Mapping

    from monarch_client.runner.node_streams.open_sessions import OpenSessions

    Service = Callable[[NodeStream], Awaitable[None]]

_OPENING_TIMEOUT_S = 10.0
_BACKLOG = 128
# A caller closes the stream once it has read the last message.
_LINGER_S = 10.0


class NodeServer:
    """The server, with a handler for each service, and the sessions of laptops that are open."""

    def __init__(self, services: Mapping[str, Service], sessions: OpenSessions) -> None:
        self._services = services
        self._sessions = sessions
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None

    async def listen(self, address: str, port: int, certificates: Path) -> None:
        """Accept streams. OSError: the port is not available."""
        context = tls.server_context(certificates)
        self._server = await asyncio.start_server(
            self._serve, sock=_listener(address, port), ssl=context, limit=CHUNK_BYTES
        )

    async def close(self) -> None:
        """Close the port, and cancel what its streams are doing."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._talk(reader, writer))
        self._tasks.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            _report(task)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            opening = self._open(reader, writer)
            service, stream, session = await asyncio.wait_for(opening, _OPENING_TIMEOUT_S)
            if session is not None:
                self._sessions.end_with(session, asyncio.current_task())
            await service(stream)
        except RefusedError as error:
            await send_line(writer, {"error": str(error)})
        except asyncio.TimeoutError:
            return
        await _linger(reader, writer)

    async def _open(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Service, NodeStream, int | None]:
        request = await read_line(reader)
        certificate = writer.get_extra_info("peercert")
        name, session = checked_service(certificate, request, self._sessions.kind_of)
        service = self._services.get(name)
        if service is None:
            raise RefusedError(f"This node has no service called {name!r}.")
        return service, NodeStream(request, reader, writer), session


def _report(task: asyncio.Task[None]) -> None:
    """Print what broke a stream, unless that is the end of its connection."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, (OSError, EOFError)):
        context = {"message": "A node stream failed", "exception": error}
        task.get_loop().call_exception_handler(context)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait until the caller closes: an abort before that would drop the last bytes."""
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await writer.drain()
        await asyncio.wait_for(_discard(reader), _LINGER_S)


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(CHUNK_BYTES):
        pass


def _listener(address: str, port: int) -> socket.socket:
    # Named in full: asyncio switches delays off only where it knows the protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            listener.close()
            raise
        # The others use an address that is translated on its way here.
        listener.bind(("", port))
    listener.listen(_BACKLOG)
    return listener
