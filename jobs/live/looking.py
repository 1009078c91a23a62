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
from typing import Protocol, TypeVar

from django.db import connections

from jobs.errors import PortalError
from jobs.live import sse
from jobs.live.feed import LOOK_S, feed
from jobs.live.places import Place
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


class Watch(Protocol):
    """One stream's state between two looks."""

    def topics(self) -> set[str]:
        """What to watch. Asked again after every look."""

    def look(self, hinted: set[str]) -> Look:
        """Read what is new. Runs in a thread."""


async def in_thread(read: Callable[..., T], *arguments: object) -> T:
    """Call `read` in one of the shared threads and give its database connection back."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _and_let_go, read, arguments)


def _and_let_go(read: Callable[..., T], arguments: tuple[object, ...]) -> T:
    try:
        return read(*arguments)
    finally:
        connections.close_all()


def _look(watch: Watch, hinted: set[str]) -> Look:
    """One look. Where it fails the stream ends, and its reader comes back where it was."""
    try:
        return watch.look(hinted)
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
                found = await in_thread(_look, watch, hinted)
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
