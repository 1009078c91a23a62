"""Functions by digest, kept alike in a driver and in an executor.

Both see the same calls in the same order, so both remember and forget the same functions: the
driver sends code only with a call whose digest the executor does not know.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

LIMIT = 256
_Item = TypeVar("_Item")


class CodeCache(Generic[_Item]):
    """The functions of the latest calls."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._items: OrderedDict[bytes, _Item] = OrderedDict()
        self._limit = limit

    def find(self, digest: bytes) -> _Item | None:
        """Return what is known of a digest, and note its use."""
        item = self._items.get(digest)
        if item is not None:
            self._items.move_to_end(digest)
        return item

    def add(self, digest: bytes, item: _Item) -> None:
        """Remember a digest; forget the one that was not used for longest."""
        self._items[digest] = item
        if len(self._items) > self._limit:
            self._items.popitem(last=False)
