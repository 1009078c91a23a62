"""The loop behind every live stream: look, send what is new, wait for a hint, look again.

Looking reads the database in one of a few threads that all streams share; between two looks a
stream holds neither a thread nor a connection.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from django.db import connections

from jobs.errors import PortalError
from jobs.ground.outages import is_database_away
from jobs.live import sse
from jobs.live.access import Access
from jobs.live.feed import LOOK_S, Feed, feed
from jobs.live.packing import Piece
from jobs.live.shared_reads import Common, Newest, SharedReads
from jobs.live.stream_slots import StreamSlot

T = TypeVar("T")

log = logging.getLogger(__name__)

# How old what others have read may be for a stream that looks although nothing was hinted at.
MOST_AGE_S = 0.5

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="live")


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look: events to send, and whether to look again at once or never."""

    events: list[Piece]
    is_behind: bool = False
    is_over: bool = False


class News(NamedTuple):
    """The result of one read for all equal streams; `events` is what most of them send."""

    events: list[Piece]
    found: Any


_NO_NEWS = News([], None)


class Watch:
    """One stream's state between two looks. `access`: its reader's right to any of it."""

    # The least time between two looks, in seconds. All streams look at the same moments then, so
    # that they share their reads.
    pace_s = 0.0

    def __init__(self, access: Access) -> None:
        self.access = access

    def topics(self) -> set[str]:
        """Return the topics to watch. Called again after every look."""
        raise NotImplementedError

    def wants(self, hinted: set[str]) -> Common[News] | None:
        """Return what to read, together with all equal streams. None: nothing."""
        raise NotImplementedError

    def take(self, news: News, *, is_newest: bool) -> Look:
        """Choose what of it to send. There may be more already, unless it is the newest."""
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
    return sum(len(each.raw) for each in news.events)


_reads: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedReads[News]] = WeakKeyDictionary()


def _shared_reads() -> SharedReads[News]:
    """Return the shared reads of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _reads:
        _reads[loop] = SharedReads(in_thread, _weight)
    return _reads[loop]


async def _look(
    watch: Watch, hinted: set[str], wanted: Newest, reads: SharedReads[News], newest: int
) -> Look:
    """Look once. If that fails the stream ends, and its reader continues from the same position."""
    try:
        if watch.access.is_due:
            await in_thread(watch.access.confirm)
        common = watch.wants(hinted)
        if common is None:
            return watch.take(_NO_NEWS, is_newest=True)
        news, is_newest = await reads.get(common, wanted, newest)
        return watch.take(news, is_newest=is_newest)
    except PortalError:
        # The object was deleted, or this reader may no longer see it.
        return Look([], is_over=True)
    except Exception as error:
        if not is_database_away(error):
            raise
        log.warning("live stream ended: %s", error, extra={"action": "live_stream_lost"})
        return Look([], is_over=True)


def _expire_if_hinted(access: Access, hinted: set[str], live_feed: Feed) -> None:
    """Make the check of the reader's rights due after a hint at them.

    While the feed has no connection, every topic counts as hinted at: that is no such hint.
    """
    if access.topic in hinted and live_feed.connected:
        access.expire()


def _until_next(pace_s: float, looked_at: float, now: float) -> float:
    """Return the seconds until the next common moment; 0 if the last look is long past."""
    return 0.0 if now - looked_at >= pace_s else pace_s - now % pace_s


async def events_of(watch: Watch, slot: StreamSlot) -> AsyncGenerator[Piece]:
    """Yield the body of a stream, for as long as it is read and there may be more.

    It keeps `slot` until it ends.
    """
    now = asyncio.get_running_loop().time
    reads, live_feed = _shared_reads(), feed()
    with slot:
        yield sse.OPENING
        sent_at = now()
        async with live_feed.subscribe(*watch.topics(), watch.access.topic) as hints:
            hinted: set[str] = set()
            found = Look([])
            while True:
                # Without a hint only its age shows that what others have read may be old.
                is_hinted = hinted and not found.is_behind and live_feed.connected
                wanted = Newest(hints.number, math.inf if is_hinted else MOST_AGE_S)
                looked_at = now()
                found = await _look(watch, hinted, wanted, reads, live_feed.number)
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
                    _expire_if_hinted(watch.access, hinted, live_feed)
                    hinted = hinted - {watch.access.topic}
                    if hinted and watch.pace_s:
                        await asyncio.sleep(_until_next(watch.pace_s, looked_at, now()))
                if now() - sent_at >= sse.HEARTBEAT_S:
                    yield sse.BEAT
                    sent_at = now()
