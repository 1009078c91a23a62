"""Data links: each joins a WebSocket to the portal with a worker, a node, or a proxy driver."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.gateway.dialing import CHUNK_BYTES, send_at_once
from monarch_client.runner.gateway.proxy_drivers import ProxyError
from monarch_client.runner.gateway.websocket import FAILED, NORMAL, WebSocketError
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable, Iterator

    from monarch_client.runner.gateway.proxy_drivers import ProxyDrivers
    from monarch_client.runner.gateway.websocket import WebSocket

WORKER, PROXY, NODE = "worker", "proxy", "node"
# Proxies cut connections that are idle for 60 s.
_PING_S = 10.0
# A slow program on a laptop is no fault: its control stream notices a broken network much earlier.
_SILENCE_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
# A node begins to serve its streams when the first program wants one.
_AGAIN_S = 0.2


class LinkRequest(NamedTuple):
    """A request of the portal to dial back: `number` identifies a connection of a session.

    Each reconnection has a higher `generation`.
    """

    session: int
    number: int
    generation: int
    rank: int
    kind: str
    token: str

    @classmethod
    def parse(cls, message: dict[str, Any]) -> LinkRequest:
        """Parse a message. KeyError, TypeError and ValueError if it is none."""
        return cls(
            session=int(message["session"]),
            number=int(message["link"]),
            generation=int(message["generation"]),
            rank=int(message.get("rank", 0)),
            kind=str(message.get("kind", WORKER)),
            token=str(message["token"]),
        )


class Links:
    """The links of all sessions, each in its newest generation.

    `targets` are the hosts and ports of the kinds WORKER and NODE, by rank. `admit` reports the
    open sessions to the node of a rank.
    """

    def __init__(
        self,
        targets: dict[str, list[tuple[str, int]]],
        proxies: ProxyDrivers,
        dial: Callable[[str], Awaitable[WebSocket]],
        admit: Callable[[int], Awaitable[None]],
    ) -> None:
        self._targets = targets
        self._admit = admit
        self._proxies = proxies
        self._dial = dial
        self._newest: dict[tuple[int, int], tuple[int, asyncio.Task[None]]] = {}
        # The open links to workers of each session, and when its last one ended.
        self._open: Counter[int] = Counter()
        self._ended_at: dict[int, float] = {}

    def open(self, request: LinkRequest) -> asyncio.Task[None] | None:
        """Open a link, after older generations of it are closed.

        The task ends with the link; LinkError if it could not be opened. None: the request is older
        than the link.
        """
        key = (request.session, request.number)
        generation, former = self._newest.get(key, (-1, None))
        if generation >= request.generation:
            return None
        task = asyncio.ensure_future(self._serve(request, former))
        self._newest[key] = (request.generation, task)
        return task

    async def close(self, session: int | None = None) -> None:
        """Close all links of a session, or of all sessions, which may come back in time."""
        keys = [key for key in self._newest if session is None or key[0] == session]
        await _cancel([self._newest.pop(key)[1] for key in keys])

    def forget(self, session: int) -> None:
        """Forget a session that the portal has ended, once its links are closed."""
        self._open.pop(session, None)
        self._ended_at.pop(session, None)

    def sessions(self) -> set[int]:
        """Return the sessions that have links, or had some."""
        return {session for session, _ in self._newest} | set(self._ended_at)

    async def _serve(self, request: LinkRequest, former: asyncio.Task[None] | None) -> None:
        # A worker reads the older connection first: behind an open one the new one hangs for ever.
        if former is not None:
            await _cancel([former])
        if request.kind not in {WORKER, PROXY, NODE}:
            raise LinkError(f"this version has no streams of the kind {request.kind!r}")
        targets = self._targets[NODE if request.kind == NODE else WORKER]
        if not 0 <= request.rank < len(targets):
            raise LinkError(f"there is no rank {request.rank}")
        if request.kind == WORKER:
            self._refuse_late(request.session)
        stream = await self._dial(request.token)
        try:
            reader, writer = await self._connect(request)
            with self._counted(request):
                try:
                    await _join(stream, reader, writer)
                finally:
                    await _end(writer)
        except asyncio.CancelledError:
            # A newer generation waits for this end.
            stream.abort()
            raise
        except LinkError:
            await stream.close(FAILED)
            raise
        await stream.close(NORMAL)

    @contextmanager
    def _counted(self, request: LinkRequest) -> Iterator[None]:
        """Count the link among the open ones of its session, if it leads to a worker."""
        if request.kind != WORKER:
            yield
            return
        self._open[request.session] += 1
        try:
            yield
        finally:
            self._open[request.session] -= 1
            self._ended_at[request.session] = time.monotonic()

    def _refuse_late(self, session: int) -> None:
        """Raise SessionLateError if workers may have given up a session that had no link.

        A worker that has given up a client crashes when that client comes back, and ends the job.
        """
        ended_at = self._ended_at.get(session)
        if ended_at is None or self._open[session]:
            return
        away_s = time.monotonic() - ended_at
        if away_s > MAX_AWAY_S:
            raise SessionLateError(
                f"The workers were not reached for {away_s:.0f} s, and hold messages for "
                f"{MAX_AWAY_S} s. Start the program again."
            )

    async def _connect(
        self, request: LinkRequest
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if request.kind == PROXY:
            try:
                return await self._proxies.connect(request.session, CHUNK_BYTES)
            except ProxyError as error:
                raise LinkError(str(error)) from error
        host, port = self._targets[request.kind][request.rank]
        try:
            connecting = _patient(host, port) if request.kind == NODE else _once(host, port)
            reader, writer = await asyncio.wait_for(connecting, _CONNECT_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError) as error:
            raise _not_accepted(request, error) from error
        try:
            if request.kind == NODE:
                await self._admit(request.rank)
        except BaseException as error:
            writer.transport.abort()
            if isinstance(error, OSError):
                raise _not_accepted(request, error) from error
            raise
        send_at_once(writer)
        return reader, writer


def _not_accepted(request: LinkRequest, error: BaseException) -> LinkError:
    why = str(error) or f"no answer in {_CONNECT_TIMEOUT_S:g} s"
    return LinkError(f"the {request.kind} of rank {request.rank} does not accept: {why}")


async def _once(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(host, port, limit=CHUNK_BYTES)


async def _patient(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a node, whose process may only just be starting."""
    last_at = time.monotonic() + _CONNECT_TIMEOUT_S - 2 * _AGAIN_S
    while True:
        try:
            return await _once(host, port)
        except ConnectionRefusedError:  # noqa: PERF203 - a pause follows
            if time.monotonic() > last_at:
                raise
            await asyncio.sleep(_AGAIN_S)


class LinkError(OSError):
    """A link that could not be opened; the message contains the reason."""


class SessionLateError(LinkError):
    """A session that was without a link for longer than workers wait: it must not come back."""


async def _join(
    stream: WebSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass bytes both ways until one side ends."""
    tasks = [
        asyncio.ensure_future(_to_target(stream, writer)),
        asyncio.ensure_future(_from_target(stream, reader)),
        asyncio.ensure_future(_keep_alive(stream)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel(tasks)


async def _to_target(stream: WebSocket, writer: asyncio.StreamWriter) -> None:
    while True:
        message = await stream.receive()
        if message.is_text:
            raise WebSocketError("a data stream carries binary messages only")
        writer.write(message.content)
        await writer.drain()


async def _from_target(stream: WebSocket, reader: asyncio.StreamReader) -> None:
    while True:
        content = await reader.read(CHUNK_BYTES)
        if not content:
            return
        await stream.send_binary(content)


async def _keep_alive(stream: WebSocket) -> None:
    while stream.silent_s < _SILENCE_S:
        await asyncio.sleep(_PING_S)
        await stream.ping()


async def _end(writer: asyncio.StreamWriter) -> None:
    """Close a worker's connection, and wait until the socket is closed."""
    writer.transport.abort()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
