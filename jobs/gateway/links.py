"""Data links: two connections, one from each end, that the gateway joins."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from websockets.exceptions import ConnectionClosed

from jobs.gateway.listeners import Connection
from jobs.gateway.rates import Meter

TOKEN_LIFE_S = 60.0
# Not joined yet, of one session.
MOST_PENDING = 64
# Of RFC 6455.
_LONGEST_REASON = 123
FAILED = 1011
# A head closes its end of a link before it reports why.
_REASON_S = 2.0
_SHORTEST_WAIT_S = 0.01
PassOn = Callable[[int], Awaitable[None]]


class Side(Enum):
    """The two ends of a link."""

    PROGRAM = "program"
    HEAD = "head"


@dataclass(eq=False)
class Link:
    """A link of a session in one generation: each reconnection is a new one.

    `tokens` admit one connection of each side. They begin with the `instance` that knows them.
    """

    session_id: int
    number: int
    generation: int
    meter: Meter
    instance: str
    tokens: dict[Side, str] = field(init=False)
    created_at: float = field(default_factory=time.monotonic)
    _ends: dict[Side, Connection] = field(default_factory=dict)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _failed: asyncio.Event = field(default_factory=asyncio.Event)
    _why: str = ""

    def __post_init__(self) -> None:
        self.tokens = {side: f"{self.instance}.{secrets.token_urlsafe(32)}" for side in Side}

    @property
    def is_late(self) -> bool:
        """Whether the time of its tokens has passed."""
        return self._left_s <= 0

    @property
    def is_done(self) -> bool:
        """Whether no end can use it anymore."""
        return self._over.is_set() if len(self._ends) == len(Side) else self.is_late

    @property
    def _left_s(self) -> float:
        return self.created_at + TOKEN_LIFE_S - time.monotonic()

    async def serve(self, side: Side, connection: Connection) -> None:
        """Carry messages until one of both sides closes; the second to arrive does the work."""
        self._ends[side] = connection
        if self._over.is_set():
            await self._refuse(connection)
        elif len(self._ends) == len(Side):
            await self._join()
        else:
            await self._await_other(connection)

    async def fail(self, why: str) -> None:
        """Close the link, since the head does not reach the worker: an end that comes later too."""
        self._why = why
        self._failed.set()
        await self.close(FAILED, why)

    async def _refuse(self, connection: Connection) -> None:
        """Close the end that comes after the other one has left, with the head's reason."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._failed.wait(), _REASON_S)
        await connection.close(FAILED, _short(self._why or "The other end has left."))

    async def _await_other(self, connection: Connection) -> None:
        """Wait for the other end, as long as its token is good; then close this one."""
        gone = asyncio.create_task(connection.wait_closed())
        over = asyncio.create_task(self._over.wait())
        try:
            while not (gone.done() or over.done()):
                is_alone = len(self._ends) < len(Side)
                if is_alone and self.is_late:
                    await self.close(FAILED, "The other end did not connect in time.")
                # A busy loop's timers may fire early: then the rest is waited for.
                left_s = max(_SHORTEST_WAIT_S, self._left_s) if is_alone else None
                await asyncio.wait(
                    {gone, over}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            gone.cancel()
            over.cancel()
        await self.close()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close both connections at once, with a reason of at most 123 bytes."""
        self._over.set()
        short = _short(reason)
        await asyncio.gather(*(each.close(code, short) for each in self._ends.values()))

    def cut(self) -> None:
        """Abort both connections: a newer generation is on its way, and one end may be gone."""
        self._over.set()
        for each in self._ends.values():
            each.transport.abort()

    async def _join(self) -> None:
        program, head = self._ends[Side.PROGRAM], self._ends[Side.HEAD]
        carriers = {
            asyncio.create_task(_carry(program, head, self.meter.up)),
            asyncio.create_task(_carry(head, program, self.meter.down)),
            asyncio.create_task(self._over.wait()),
        }
        try:
            await asyncio.wait(carriers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in carriers:
                task.cancel()
            await asyncio.gather(*carriers, return_exceptions=True)
            await self.close()


def _short(reason: str) -> str:
    return reason.encode()[:_LONGEST_REASON].decode(errors="ignore")


async def _carry(source: Connection, target: Connection, pass_on: PassOn) -> None:
    """Send what comes from `source` to `target`. The next message is read once one was sent."""
    with suppress(ConnectionClosed):
        while True:
            message = await source.recv()
            if isinstance(message, str):
                return  # data is binary: a text message is a fault of its sender
            await pass_on(len(message))
            await target.send(message)
