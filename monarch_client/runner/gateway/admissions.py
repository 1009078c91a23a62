"""The sessions of laptops that are open, as the portal orders; the head reports them to the nodes.

A node that does not take a report is cut off: without the head's stream it serves no laptop
(`node_streams/open_sessions.py`).
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.open_sessions import BEAT_S
from monarch_client.runner.node_streams.opening import read_line, send_line

if TYPE_CHECKING:
    from typing import Awaitable, Callable, Iterable

    from monarch_client.runner.node_streams.dialing import OpenStream

_ANSWER_S = 20.0


class Admissions:
    """The open sessions with their kinds, and a stream of reports to each node that needs one.

    `dial` opens the service `sessions` of a rank.
    """

    def __init__(self, dial: Callable[[int], Awaitable[OpenStream]]) -> None:
        self._dial = dial
        self._kinds: dict[int, str] = {}
        self._nodes: dict[int, _Node] = {}
        self._beating: asyncio.Task[None] | None = None

    def open(self, session: int, kind: str) -> None:
        """Note an open session. Nodes learn of it when it first reaches them."""
        if kind:
            self._kinds[session] = kind

    def sessions(self) -> set[int]:
        """Return the open sessions."""
        return set(self._kinds)

    async def admit(self, rank: int) -> None:
        """Return once a node knows which sessions are open. OSError: it does not answer."""
        node = self._nodes.setdefault(rank, _Node())
        if self._beating is None:
            self._beating = asyncio.ensure_future(self._beat())
        await node.report(self._kinds, lambda: self._dial(rank))

    async def end(self, sessions: Iterable[int]) -> None:
        """End sessions at all nodes."""
        for session in sessions:
            self._kinds.pop(session, None)
        await self._report()

    async def close(self) -> None:
        """End all sessions, since the attempt ends."""
        if self._beating is not None:
            self._beating.cancel()
        for node in self._nodes.values():
            node.abort()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self._report()

    async def _report(self) -> None:
        reports = [node.report(self._kinds, None) for node in self._nodes.values()]
        await asyncio.gather(*reports, return_exceptions=True)


class _Node:
    """The stream of reports to one node."""

    def __init__(self) -> None:
        self._stream: OpenStream | None = None
        self._numbers = itertools.count(1)
        self._lock = asyncio.Lock()

    async def report(
        self, kinds: dict[int, str], dial: Callable[[], Awaitable[OpenStream]] | None
    ) -> None:
        """Send the open sessions and await the node's answer. OSError.

        Without a stream it is dialed, or nothing is sent: then the node serves no session. A link
        that is cancelled meanwhile cancels no report: the stream is that of all sessions.
        """
        await asyncio.shield(asyncio.ensure_future(self._report(kinds, dial)))

    async def _report(
        self, kinds: dict[int, str], dial: Callable[[], Awaitable[OpenStream]] | None
    ) -> None:
        async with self._lock:
            if self._stream is not None and await self._is_taken(self._stream, kinds):
                return
            if dial is not None:
                # The node may serve its streams from a new process, which knows of no session.
                self._stream = await dial()
                if not await self._is_taken(self._stream, kinds):
                    raise OSError("it does not take the report of open sessions")

    def abort(self) -> None:
        """Cut the stream."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.writer.transport.abort()

    async def _is_taken(self, stream: OpenStream, kinds: dict[int, str]) -> bool:
        """Whether the node has taken a report; the stream is cut if not."""
        number = next(self._numbers)
        named = {str(session): kind for session, kind in kinds.items()}
        try:
            await send_line(stream.writer, {"number": number, "sessions": named})
            answer = await asyncio.wait_for(read_line(stream.reader), _ANSWER_S)
        except (OSError, asyncio.TimeoutError):
            answer = {}
        if answer.get("number") != number:
            self.abort()
            return False
        return True
