"""Functions by digest, kept alike in a driver and in an executor.

Both see the same calls in the same order, so both remember and forget the same functions: the
driver sends code only with a call whose digest the executor does not know.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

LIMIT = 256
LIMIT_BYTES = 32 * 2**20
_Item = TypeVar("_Item")


class CodeCache(Generic[_Item]):
    """The functions of the latest calls."""

    def __init__(self, limit: int = LIMIT, limit_bytes: int = LIMIT_BYTES) -> None:
        self._items: OrderedDict[bytes, tuple[_Item, int]] = OrderedDict()
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._bytes = 0

    def find(self, digest: bytes) -> _Item | None:
        """Return what is known of a digest, and note its use."""
        found = self._items.get(digest)
        if found is None:
            return None
        self._items.move_to_end(digest)
        return found[0]

    def add(self, digest: bytes, item: _Item, size: int) -> list[_Item]:
        """Remember a digest that is not known, of `size` bytes; forget what was not used longest.

        The latest one stays, whatever its size. Return what is forgotten.
        """
        forgotten = []
        self._items[digest] = item, size
        self._bytes += size
        while len(self._items) > 1 and self._is_full():
            _, (oldest, freed) = self._items.popitem(last=False)
            forgotten.append(oldest)
            self._bytes -= freed
        return forgotten

    def _is_full(self) -> bool:
        return len(self._items) > self._limit or self._bytes > self._limit_bytes
