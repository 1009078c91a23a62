"""The loop behind every live stream: look, send what is new, wait for a hint, look again.

Looking reads the database in one of a few threads that all streams share; between two looks a
stream holds neither a thread nor a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import connections

from jobs.errors import PortalError
from jobs.live import sse
from jobs.live.feed import LOOK_S, Hints, feed
from jobs.live.places import Place
from jobs.live.shared_reads import Common, SharedReads
from jobs.outages import is_database_away

T = TypeVar("T")

log = logging.getLogger(__name__)

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="live")


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found: events to send, and whether to look again at once or never."""

    events: list[bytes]
    is_behind: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What comes after a place in a log, for any reader who stands there; `place` is behind it."""

    events: list[bytes]
    place: Any
    is_cut: bool


class Watch:
    """One stream's state between two looks."""

    def topics(self) -> set[str]:
        """What to watch. Asked again after every look."""
        raise NotImplementedError

    def look(self, hinted: set[str]) -> Look:
        """Read what is new. Runs in a thread."""
        raise NotImplementedError

    def common(self, hinted: set[str]) -> Common[News] | None:
        """In place of a look: what others read as well, if it can be that alone."""
        del hinted
        return None

    def take(self, news: News, *, is_behind: bool) -> None:
        """Stand behind what `common` has found; there may be more already."""
        raise NotImplementedError


async def in_thread(read: Callable[..., T], *arguments: object) -> T:
    """Call `read` in one of the shared threads and give its database connection back."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _and_let_go, read, arguments)


def _and_let_go(read: Callable[..., T], arguments: tuple[object, ...]) -> T:
    try:
        return read(*arguments)
    finally:
        connections.close_all()


def _weight(news: News) -> int:
    return sum(map(len, news.events))


_reads: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedReads[News]] = WeakKeyDictionary()


def _shared_reads() -> SharedReads[News]:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _reads:
        _reads[loop] = SharedReads(in_thread, _weight)
    return _reads[loop]


async def _look(watch: Watch, hinted: set[str], hints: Hints) -> Look:
    """One look. Where it fails the stream ends, and its reader comes back where it was."""
    try:
        common = watch.common(hinted)
        if common is None:
            return await in_thread(watch.look, hinted)
        news, is_newest = await _shared_reads().get(common, hints.number, feed().number)
        is_behind = news.is_cut or not is_newest
        watch.take(news, is_behind=is_behind)
        return Look(news.events, is_behind=is_behind)
    except PortalError:
        # The thing is gone, or no longer this reader's to see.
        return Look([], is_over=True)
    except Exception as error:
        if not is_database_away(error):
            raise
        log.warning("live stream ended: %s", error, extra={"action": "live_stream_lost"})
        return Look([], is_over=True)


async def events_of(watch: Watch, place: Place) -> AsyncIterator[bytes]:
    """The body of a stream, for as long as somebody reads it and there may be more.

    It keeps `place` until it ends.
    """
    now = asyncio.get_running_loop().time
    with place:
        yield sse.opening()
        sent_at = now()
        async with feed().subscribe(*watch.topics()) as hints:
            hinted: set[str] = set()
            while True:
                found = await _look(watch, hinted, hints)
                for each in found.events:
                    yield each
                    sent_at = now()
                if found.is_over:
                    return
                await hints.watch(*watch.topics())
                hinted = set()
                if not found.is_behind:
                    until_beat_s = max(0.0, sent_at + sse.HEARTBEAT_S - now())
                    hinted = await hints.wait(min(LOOK_S, until_beat_s))
                if now() - sent_at >= sse.HEARTBEAT_S:
                    yield sse.beat()
                    sent_at = now()
