"""Reads that many streams of one process need at the same moment, done once.

Readers of one log who have all that there is stand at the same line. Whatever comes next is read
and put into bytes for the first of them who asks, and sent to all.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# Readers who are a little late find what the others have had already.
MOST_KEPT = 64
MOST_BYTES = 16 * 1024 * 1024


class Common(NamedTuple, Generic[T]):
    """What anybody who stands at `key` would read next. `read` runs in a thread."""

    key: Hashable
    read: Callable[[], T]


@dataclass(slots=True)
class _Read(Generic[T]):
    """One read, under way or done. It has seen all that was told up to hint number `hint`."""

    hint: int
    task: asyncio.Future[T]
    size: int = 0


@dataclass(slots=True)
class SharedReads(Generic[T]):
    """The last reads of one event loop; `weigh` tells how many bytes a result holds."""

    run: Callable[[Callable[[], T]], Awaitable[T]]
    weigh: Callable[[T], int]
    _reads: OrderedDict[Hashable, _Read[T]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    async def get(self, common: Common[T], wanted: int, newest: int) -> tuple[T, bool]:
        """The result, and whether it has seen hint number `wanted`; `newest` is the last so far.

        An older one that found something is as good: it is where the log goes on. What `read`
        raises is raised for everybody who waits for it.
        """
        known = self._reads.get(common.key)
        if known is None or (known.hint < wanted and self._is_empty(known)):
            known = self._begin(common, newest)
        # Whoever goes away while waiting must not end it for the others.
        return await asyncio.shield(known.task), known.hint >= wanted

    def _begin(self, common: Common[T], newest: int) -> _Read[T]:
        self._forget(common.key)
        read = _Read(newest, asyncio.ensure_future(self.run(common.read)))
        self._reads[common.key] = read
        read.task.add_done_callback(lambda _: self._done(common.key, read))
        return read

    def _is_empty(self, read: _Read[T]) -> bool:
        return read.task.done() and not read.size

    def _done(self, key: Hashable, read: _Read[T]) -> None:
        if self._reads.get(key) is not read:
            return
        if read.task.cancelled() or read.task.exception() is not None:
            self._forget(key)
            return
        read.size = self.weigh(read.task.result())
        self._bytes += read.size
        while len(self._reads) > MOST_KEPT or self._bytes > MOST_BYTES:
            self._forget(next(iter(self._reads)))

    def _forget(self, key: Hashable) -> None:
        read = self._reads.pop(key, None)
        if read is not None:
            self._bytes -= read.size
