"""The sessions of laptops that are open, as the portal orders; the head reports them to the nodes.

A node that does not take a report is cut off: without the head's stream it serves no laptop
(`node_streams/open_sessions.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.open_sessions import BEAT_S
from monarch_client.runner.node_streams.opening import read_line, send_line

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable

    from monarch_client.runner.node_streams.dialing import OpenStream

# With BEAT_S far below the SILENCE_S of nodes, which end all sessions then.
_ANSWER_S = 8.0


class Admissions:
    """The open sessions with their kinds, and a stream of reports to each node that needs one.

    `dial` opens the service `sessions` of a rank. No node waits for another: one that hangs delays
    no report to the others.
    """

    def __init__(self, dial: Callable[[int], Awaitable[OpenStream]]) -> None:
        self._dial = dial
        self._kinds: dict[int, str] = {}
        self._nodes: dict[int, _Node] = {}

    def open(self, session: int, kind: str) -> None:
        """Note an open session. Nodes learn of it when it first reaches them."""
        if kind:
            self._kinds[session] = kind

    def sessions(self) -> set[int]:
        """Return the open sessions."""
        return set(self._kinds)

    async def admit(self, rank: int) -> None:
        """Return once a node knows which sessions are open. OSError: it does not answer."""
        if rank not in self._nodes:
            self._nodes[rank] = _Node(self._kinds, functools.partial(self._dial, rank))
        await self._nodes[rank].admit()

    def end(self, session: int) -> None:
        """Begin to end a session at all nodes."""
        if self._kinds.pop(session, None) is not None:
            for node in self._nodes.values():
                node.report_soon()

    def close(self) -> None:
        """End all sessions, since the attempt ends."""
        for node in self._nodes.values():
            node.close()


class _Node:
    """The stream of reports to one node, one report after another, at least every BEAT_S.

    A link that is cancelled while it waits cancels no report: the stream is that of all sessions.
    """

    def __init__(self, kinds: dict[int, str], dial: Callable[[], Awaitable[OpenStream]]) -> None:
        self._kinds = kinds
        self._dial = dial
        self._stream: OpenStream | None = None
        self._numbers = itertools.count(1)
        self._is_due = asyncio.Event()
        # Links that wait for the next report.
        self._waiting: list[asyncio.Future[None]] = []
        self._reporting = asyncio.ensure_future(self._report_on())

    async def admit(self) -> None:
        """Return once the node has taken a report that begins from now on. OSError."""
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(taken)
        self.report_soon()
        await taken

    def report_soon(self) -> None:
        """Report as soon as the report before is answered."""
        self._is_due.set()

    def close(self) -> None:
        """Report no more, and cut the stream."""
        self._reporting.cancel()
        self._cut()

    async def _report_on(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._is_due.wait(), BEAT_S)
            self._is_due.clear()
            waiting, self._waiting = self._waiting, []
            report = self._report(may_dial=bool(waiting))
            (error,) = await asyncio.gather(report, return_exceptions=True)
            for taken in [each for each in waiting if not each.done()]:
                if error is None:
                    taken.set_result(None)
                else:
                    taken.set_exception(error)

    async def _report(self, *, may_dial: bool) -> None:
        """Send the open sessions and await the node's answer. OSError.

        Without a stream it is dialed, or nothing is sent: then the node serves no session.
        """
        if self._stream is not None and await self._is_taken(self._stream):
            return
        if may_dial:
            # The node may serve its streams from a new process, which knows of no session.
            self._stream = await self._dial()
            if not await self._is_taken(self._stream):
                raise OSError("it does not take the report of open sessions")

    async def _is_taken(self, stream: OpenStream) -> bool:
        """Whether the node has taken a report; the stream is cut if not."""
        number = next(self._numbers)
        try:
            answer = await asyncio.wait_for(self._exchange(stream, number), _ANSWER_S)
        except (OSError, asyncio.TimeoutError):
            answer = {}
        if answer.get("number") != number:
            self._cut()
            return False
        return True

    async def _exchange(self, stream: OpenStream, number: int) -> dict[str, Any]:
        named = {str(session): kind for session, kind in self._kinds.items()}
        await send_line(stream.writer, {"number": number, "sessions": named})
        return await read_line(stream.reader)

    def _cut(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.writer.transport.abort()
