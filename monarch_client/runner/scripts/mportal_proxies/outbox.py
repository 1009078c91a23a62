"""Messages that the other side has not acknowledged. Pure: the channel sends them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Iterator

KEEP_BYTES = 256 << 20
KEEP_S = 600.0


class Kept(NamedTuple):
    """A message with its number, and a short one for its place once it has expired."""

    number: int
    payload: bytes
    substitute: bytes | None
    since: float


class Outbox:
    """Numbered messages, kept until they are acknowledged."""

    def __init__(self) -> None:
        self._kept: deque[Kept] = deque()
        self.last = 0
        self.size = 0

    def add(self, payload: bytes, now: float, substitute: bytes | None = None) -> int:
        """Keep a message, and return its number."""
        self.last += 1
        self._kept.append(Kept(self.last, payload, substitute, now))
        self.size += len(payload)
        return self.last

    def acknowledge(self, number: int) -> None:
        """Drop the messages up to this number."""
        while self._kept and self._kept[0].number <= number:
            self.size -= len(self._kept.popleft().payload)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the numbers and payloads, the oldest first."""
        return ((kept.number, kept.payload) for kept in self._kept)

    def expire(self, now: float, *, keep_s: float = KEEP_S, keep_bytes: int = KEEP_BYTES) -> int:
        """Replace messages that are too old, then the oldest that are too many. Return how many.

        The newest message is kept whatever its size. Messages without a substitute stay.
        """
        excess, expired = self.size - keep_bytes, 0
        for position, kept in enumerate(self._kept):
            too_many = excess > 0 and position < len(self._kept) - 1
            if not too_many and now - kept.since <= keep_s:
                break
            if kept.substitute is not None:
                gain = len(kept.payload) - len(kept.substitute)
                self._kept[position] = kept._replace(payload=kept.substitute, substitute=None)
                self.size -= gain
                excess -= gain
                expired += 1
        return expired
