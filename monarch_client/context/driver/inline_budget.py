"""The values that the driver keeps in its own memory: until they are too many."""

from __future__ import annotations

from monarch_client.context.values import LARGEST_INLINE, SMALLEST_STORED

DEFAULT_BYTES = 256 * 2**20


class InlineBudget:
    """The bytes of results, arguments and functions that are inside of messages.

    Once they exceed the budget, new ones above `SMALLEST_STORED` go to the object store, until
    enough of the others are dropped. Smaller ones are not counted: an object in the store takes as
    much of the driver's memory.
    """

    __slots__ = ("_limit", "used")

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        if limit < 0:
            raise ValueError(f"inline_bytes cannot be negative, and is {limit}")
        self._limit = limit
        self.used = 0

    @property
    def largest(self) -> int:
        """The bytes of the largest value that may be inside of a message now."""
        return LARGEST_INLINE if self.used < self._limit else SMALLEST_STORED

    def add(self, size: int) -> None:
        """Count a value that the driver keeps."""
        if size > SMALLEST_STORED:
            self.used += size

    def remove(self, size: int) -> None:
        """Count a value no longer."""
        if size > SMALLEST_STORED:
            self.used -= size
