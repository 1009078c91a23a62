"""WebSocket connections of the gateway, from its own port or handed over by web."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from websockets.asyncio.server import Server, ServerConnection
from websockets.exceptions import InvalidHandshake, WebSocketException
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from jobs.gateway.handover import Receiver

log = logging.getLogger(__name__)
# The library's own messages: a line for every connection, at the level of information.
_library_log = logging.getLogger("websockets.server")

# Larger messages end the connection; the two ends send at most 256 KiB.
LARGEST_MESSAGE = 1024 * 1024
OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
# Messages that wait unread in a connection, and bytes that wait unsent: what a slow reader costs.
QUEUE = 2
WRITE_LIMIT = 256 * 1024
PING_S = 10.0
# What browsers offer beside their ticket: they cannot send a header.
TERMINAL = Subprotocol("mportal.terminal.v1")

# A client that is too slow, leaves, or does not speak the protocol.
_FAULTS_OF_CLIENTS = (ConnectionError, EOFError, TimeoutError, WebSocketException)

Handler = Callable[["Connection"], Awaitable[None]]
Admit = Callable[["Connection", Request], Awaitable[Response | None]]


class Connection(ServerConnection):
    """A connection; `head` are bytes of it that web has read."""

    head = b""
    # The client's network address, which `admit` sets.
    client = ""
    # The handler that `admit` chose after it had authenticated the request.
    handle: Handler
    # Called instead of `handle` if the connection does not open after all.
    on_unopened: Callable[[], None] = staticmethod(lambda: None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Continue with the bytes that were read before."""
        super().connection_made(transport)
        if self.head:
            self.data_received(self.head)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and drop the head."""
        self.head = b""
        super().data_received(data)

    def opens(self, request: Request) -> bool:
        """Whether the request is a valid opening handshake; the library answers others."""
        try:
            self.protocol.process_request(request)
        except InvalidHandshake:
            return False
        return True

    def keep_alive(self, *, ends_silence: bool) -> None:
        """Send a ping every 10 s; `ends_silence`: close after 20 s without an answer.

        Pings keep proxies from closing what is idle. A data link may be silent for longer: its
        reader is slow on purpose, and its control stream notices a lost peer.
        """
        self.ping_interval = PING_S
        self.ping_timeout = PING_S if ends_silence else None
        self.start_keepalive()


class Listeners(Server):
    """All listeners of a gateway process, and the connections that they have accepted.

    `websockets` makes connections of its own listener only; this one makes them for any.
    """

    def __init__(self, admit: Admit) -> None:
        super().__init__(self._no_server, self._serve, _library_log)
        self._admit = admit
        self._receiver: Receiver | None = None
        self._servers: list[asyncio.Server] = []
        self._accepting: set[asyncio.Task[object]] = set()
        self._closing = False

    async def _no_server(self) -> asyncio.Server:
        raise NotImplementedError

    async def listen(self, address: str) -> None:
        """Listen on "host:port"."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connection, host.strip("[]") or None, int(port))
        self._servers.append(server)

    def connect(self) -> socket.socket:
        """Return a connection to this process."""
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        self._receive(far, b"")
        return near

    def receive_at(self, path: Path) -> None:
        """Take the connections that web hands over."""
        self._receiver = Receiver(path, self._receive)

    @property
    def ports(self) -> list[int]:
        """Return the ports on which it listens."""
        return [each.getsockname()[1] for server in self._servers for each in server.sockets]

    async def end(self) -> None:
        """Close everything; clients connect again when a successor runs."""
        self._closing = True
        if self._receiver is not None:
            self._receiver.close()
        for server in self._servers:
            server.close()
        await asyncio.gather(*(each.close(1012, "restart") for each in self.connections))
        if self.handler_tasks:
            await asyncio.wait(self.handler_tasks, timeout=CLOSE_TIMEOUT_S)

    def is_serving(self) -> bool:
        """Whether new connections are accepted."""
        return not self._closing

    def _receive(self, connection: socket.socket, head: bytes) -> None:
        def make() -> Connection:
            made = self._connection()
            made.head = head
            return made

        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(make, connection))
        # The connection's handler is what counts; this one ends at once.
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    def _connection(self) -> Connection:
        return Connection(
            ServerProtocol(
                max_size=LARGEST_MESSAGE,
                logger=_library_log,
                select_subprotocol=_chosen_subprotocol,
            ),
            self,
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
            max_queue=QUEUE,
            write_limit=WRITE_LIMIT,
        )

    async def _choose(self, connection: ServerConnection, request: Request) -> Response | None:
        assert isinstance(connection, Connection)  # noqa: S101 - `_connection` makes no others
        return await self._admit(connection, request)

    async def _serve(self, connection: ServerConnection) -> None:
        assert isinstance(connection, Connection)  # noqa: S101 - `_connection` makes no others
        is_open = False
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await connection.handshake(self._choose, server_header=None)
            is_open = connection.state is State.OPEN
            if is_open:
                self.all_connections.add(connection)
                await connection.handle(connection)
                await connection.close()
        except _FAULTS_OF_CLIENTS as error:
            log.debug("connection ended: %r", error)
        except Exception:
            log.exception("connection failed", extra={"action": "gateway_connection"})
        finally:
            if not is_open:
                connection.on_unopened()
            connection.transport.abort()
            self.all_connections.discard(connection)
            if (task := asyncio.current_task()) is not None:
                self.handler_tasks.discard(task)


def _chosen_subprotocol(
    _protocol: ServerProtocol, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """Return that of terminals if it is offered: programs and heads have none."""
    return TERMINAL if TERMINAL in offered else None
