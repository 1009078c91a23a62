"""Bytes of sessions: counted, and bounded for each user and each job by token buckets."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from jobs.actions.attempts.gateway_streams import Traffic


class Bucket:
    """A token bucket of bytes or messages a second, with a second's worth at most; 0: no limit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = time.monotonic()

    async def take(self, size: int) -> None:
        """Take `size` of them; wait for as long as the bucket is overdrawn."""
        if not self._rate:
            return
        now = time.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        self._left -= size
        # All that share the bucket overdraw it, and so wait in proportion to what they take.
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)


@dataclass
class Meter:
    """The bytes of one session, and the buckets of its user and its job."""

    buckets: tuple[Bucket, ...] = ()
    _up: int = 0
    _down: int = 0

    async def up(self, size: int) -> None:
        """Count bytes from the program, and wait for room."""
        self._up += size
        await self._take(size)

    async def down(self, size: int) -> None:
        """Count bytes to the program, and wait for room."""
        self._down += size
        await self._take(size)

    def read(self) -> Traffic:
        """Return what was counted since the last reading."""
        traffic = Traffic(self._up, self._down)
        self._up = self._down = 0
        return traffic

    def put_back(self, traffic: Traffic) -> None:
        """Undo a reading that could not be stored."""
        self._up += traffic.up
        self._down += traffic.down

    async def _take(self, size: int) -> None:
        for bucket in self.buckets:
            await bucket.take(size)
