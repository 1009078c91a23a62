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

    def __post_init__(self) -> None:
        self.tokens = {side: f"{self.instance}.{secrets.token_urlsafe(32)}" for side in Side}

    @property
    def is_over(self) -> bool:
        """Whether it was closed."""
        return self._over.is_set()

    @property
    def is_late(self) -> bool:
        """Whether its time to be joined has passed."""
        return len(self._ends) < len(Side) and time.monotonic() > self.created_at + TOKEN_LIFE_S

    async def serve(self, side: Side, connection: Connection) -> None:
        """Carry messages until one of both sides closes; the second to arrive does the work."""
        self._ends[side] = connection
        if len(self._ends) == len(Side):
            await self._join()
            return
        gone = asyncio.create_task(connection.wait_closed())
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({gone, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            over.cancel()
        await self.close()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close both connections at once, with a reason of at most 123 bytes."""
        self._over.set()
        short = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
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


async def _carry(source: Connection, target: Connection, pass_on: PassOn) -> None:
    """Send what comes from `source` to `target`. The next message is read once one was sent."""
    with suppress(ConnectionClosed):
        while True:
            message = await source.recv()
            if isinstance(message, str):
                return  # data is binary: a text message is a fault of its sender
            await pass_on(len(message))
            await target.send(message)
