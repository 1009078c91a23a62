"""Messages that the other side has not acknowledged. Pure: the channel sends them."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Iterator, Union

    from .spill import Spill, Spilled

    Payload = Union[bytes, Spilled]

# What a sender may have unacknowledged before its next message waits.
KEEP_BYTES = 256 << 20
KEEP_S = 600.0
# What messages take in memory, and with those on disk. Later ones expire at once.
MEMORY_BYTES = 64 << 20
MOST_BYTES = 4 << 30
# What a message takes beside its bytes. Smaller ones than this are not worth a place on disk.
_EACH = 1024


class Kept(NamedTuple):
    """A message with its number, and a short one for its place once it has expired."""

    number: int
    payload: Payload
    substitute: bytes | None
    since: float


class Outbox:
    """Numbered messages, kept until they are acknowledged: in memory, and beyond it in `spill`."""

    def __init__(self, spill: Spill | None = None) -> None:
        self._kept: deque[Kept] = deque()
        self._spill = spill
        self._in_memory = 0
        self.last = 0
        self.size = 0

    @property
    def is_full(self) -> bool:
        """Whether the sender should wait for acknowledgements."""
        return self.size + _EACH * len(self._kept) >= KEEP_BYTES

    def add(self, payload: bytes, now: float, substitute: bytes | None = None) -> int:
        """Keep a message, and return its number."""
        self.last += 1
        self._keep(Kept(self.last, self._store(payload, substitute), substitute, now))
        return self.last

    def acknowledge(self, number: int) -> None:
        """Drop the messages up to this number."""
        while self._kept and self._kept[0].number <= number:
            self._count(self._kept.popleft().payload, -1)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the numbers and payloads, the oldest first."""
        return ((kept.number, _read(kept)) for kept in self._kept)

    def after(self, number: int) -> bytes | None:
        """Return the message that follows this number; None if it was the last one."""
        if not self._kept or number >= self.last:
            return None
        return _read(self._kept[number + 1 - self._kept[0].number])

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
                self._count(kept.payload, -1)
                self._count(kept.substitute, 1)
                self._kept[position] = kept._replace(payload=kept.substitute, substitute=None)
                excess -= gain
                expired += 1
        return expired

    def _keep(self, kept: Kept) -> None:
        self._kept.append(kept)
        self._count(kept.payload, 1)

    def _store(self, payload: bytes, substitute: bytes | None) -> Payload:
        """Return the payload, where it is kept; its substitute if there is no space for it."""
        if self._spill is None or len(payload) < _EACH:
            return payload
        if not self._in_memory or self._in_memory + len(payload) <= MEMORY_BYTES:
            return payload
        if self.size + len(payload) <= MOST_BYTES:
            with suppress(OSError):  # the disk is full
                return self._spill.store(payload)
        return payload if substitute is None else substitute

    def _count(self, payload: Payload, sign: int) -> None:
        self.size += sign * len(payload)
        if isinstance(payload, bytes):
            self._in_memory += sign * len(payload)


def _read(kept: Kept) -> bytes:
    if isinstance(kept.payload, bytes):
        return kept.payload
    try:
        return kept.payload.read()
    except OSError:
        if kept.substitute is None:
            raise
        return kept.substitute
