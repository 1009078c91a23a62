"""Reads that many streams of one process need at the same moment, done once.

Streams of one log that have sent all of it are at the same line. The lines after it are read
and encoded for the first stream that needs them, and sent to all.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# Readers who are a little late find what the others have had already.
MOST_KEPT = 512
MOST_BYTES = 16 * 1024 * 1024
# However late a reader is, what was read so long ago may be removed by now.
MOST_KEPT_S = 30.0


class Newest(NamedTuple):
    """The least that a read must have seen to be complete: this hint, at most this long ago."""

    hint: int
    most_age_s: float = math.inf


class Common(NamedTuple, Generic[T]):
    """The next read of all streams at `key`. `read` runs in a thread."""

    key: Hashable
    read: Callable[[], T]


@dataclass(slots=True)
class _Read(Generic[T]):
    """One read, under way or done. It has seen all that was hinted at up to hint number `hint`."""

    hint: int
    task: asyncio.Future[T]
    over: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0
    begun_at: float = field(default_factory=time.monotonic)

    def is_newest(self, wanted: Newest) -> bool:
        """Whether it has seen what is wanted."""
        return self.hint >= wanted.hint and self.age_s <= wanted.most_age_s

    @property
    def age_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.begun_at


@dataclass(slots=True)
class SharedReads(Generic[T]):
    """The last reads of one event loop; `weigh` returns how many bytes a result holds."""

    run: Callable[[Callable[[], T]], Awaitable[T]]
    weigh: Callable[[T], int]
    _reads: OrderedDict[Hashable, _Read[T]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    async def get(self, common: Common[T], wanted: Newest, newest: int) -> tuple[T, bool]:
        """Return the result, and whether it includes all that is `wanted`; `newest`: the last hint.

        An older one that found something is as good: it is where the log goes on. What `read`
        raises is raised for all that wait for it.
        """
        known = self._reads.get(common.key)
        # How long it takes does not matter: one that begins now is the newest there is.
        is_newest = True
        if known is None or self._is_of_no_use(known, wanted):
            known = self._begin(common, newest)
        else:
            is_newest = known.is_newest(wanted)
        # A reader that leaves while waiting does not end it for the others.
        await known.over.wait()
        return known.task.result(), is_newest

    def _begin(self, common: Common[T], newest: int) -> _Read[T]:
        self._forget(common.key)
        read = _Read(newest, asyncio.ensure_future(self.run(common.read)))
        self._reads[common.key] = read
        read.task.add_done_callback(lambda _: self._done(common.key, read))
        return read

    def _is_of_no_use(self, read: _Read[T], wanted: Newest) -> bool:
        if not read.task.done():
            return False
        return read.age_s > MOST_KEPT_S or (not read.size and not read.is_newest(wanted))

    def _done(self, key: Hashable, read: _Read[T]) -> None:
        read.over.set()
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
