"""The calls that are under way, and what they will return: Monarch receives results without bound.

The next call waits while those under way would return too much, by what calls of the same endpoint
returned before.
"""

from __future__ import annotations

import asyncio
from collections import Counter

MOST_BYTES = 128 << 20
# Of an endpoint that has returned nothing yet.
_FIRST_BYTES = 1 << 20
# Calls may wait for one another in the actors: without progress, the next one is made.
_LONGEST_WAIT_S = 1.0


class InFlight:
    """The calls of a session that are under way."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._progress = asyncio.Event()

    @property
    def expected(self) -> int:
        """The bytes that the calls under way will return."""
        counts = self._counts.items()
        return sum(count * self._sizes.get(endpoint, _FIRST_BYTES) for endpoint, count in counts)

    def begin(self, endpoint: str) -> None:
        """Count a call."""
        self._counts[endpoint] += 1

    def end(self, endpoint: str, size: int) -> None:
        """Count a call as answered with so many bytes; 0: it failed."""
        self._counts[endpoint] -= 1
        if not self._counts[endpoint]:
            del self._counts[endpoint]
        if size:
            self._sizes[endpoint] = size
        self._progress.set()

    async def wait_for_room(self) -> None:
        """Wait until another call may be made."""
        while self.expected >= MOST_BYTES:
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), _LONGEST_WAIT_S)
            except asyncio.TimeoutError:
                return
