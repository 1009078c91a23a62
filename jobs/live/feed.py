"""Hints as they arrive: one Redis subscription a web process, fanned out to its open streams.

A stream learns only *that* it should look again, so a slow one holds a flag and no backlog. While
Redis is away streams look every second; when it is back they look at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from redis import RedisError
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry as RedisRetry
from redis.backoff import NoBackoff

from monarch_client.runner.base.retry import Retry

log = logging.getLogger(__name__)

# How long a stream goes without looking although no hint came: with the feed, and without it.
LOOK_S, LOOK_WITHOUT_FEED_S = 5.0, 1.0
# With many streams hints about one thing are sent together, at most this long after the first: what
# is sent costs by the piece. A single stream gets them at once.
MOST_TOGETHER_S, TOGETHER_A_STREAM_S = 0.2, 0.0001
# Always subscribed, so that the connection lives however few streams there are.
_OWN_TOPIC = "mportal:feed"
_PING_S = 10.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 1.0


class Hints:
    """The hints that one stream has received since it last read them."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._topics: set[str] = set()
        self._hinted: set[str] = set()
        self._event = asyncio.Event()
        self.number = 0  # of the last hint that came here

    @property
    def topics(self) -> frozenset[str]:
        """Topics that this stream watches."""
        return frozenset(self._topics)

    async def watch(self, *topics: str) -> None:
        """Watch further topics. Each counts as hinted at from when its subscription is active."""
        new = set(topics) - self._topics
        if not new:
            return
        self._topics |= new
        await self._feed.add(self, new)

    def note(self, topic: str, number: int) -> None:
        """Note a hint at `topic`. Numbers rise, over all streams of the feed."""
        self._hinted.add(topic)
        self.number = number
        self._event.set()

    async def wait(self, at_most_s: float = LOOK_S) -> set[str]:
        """Return the topics hinted at since the last call; none when it is time to look anyway.

        Without the feed anything may have changed: then it is all of them.
        """
        if not self._event.is_set():
            limit = at_most_s if self._feed.connected else min(at_most_s, LOOK_WITHOUT_FEED_S)
            # Cheaper than a time-out, and never loses the cancellation by a reader who has left.
            timer = asyncio.get_running_loop().call_later(limit, self._event.set)
            try:
                await self._event.wait()
            finally:
                timer.cancel()
        self._event.clear()
        hinted, self._hinted = self._hinted, set()
        return hinted if self._feed.connected else set(self._topics)


class Feed:
    """The subscription of one event loop. It listens from the first stream on, until the loop ends.

    One connection that stays is cheaper than one for each reader who comes and goes, and redis-py
    does not end a subscription dependably when it is cancelled.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._watchers: dict[str, set[Hints]] = {}
        self._streams = 0
        self._sent_at: dict[str, float] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self.number = 0  # of the last hint that a watcher got
        self._wanted = asyncio.Event()
        self._pubsub: PubSub | None = None
        self._listener: asyncio.Task[None] | None = None
        self.connected = False

    @asynccontextmanager
    async def subscribe(self, *topics: str) -> AsyncIterator[Hints]:
        """Watch `topics` for the length of the block."""
        hints = Hints(self)
        self._streams += 1
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="live-feed")
        self._wanted.set()
        try:
            await hints.watch(*topics)
            yield hints
        finally:
            self._streams -= 1
            await self._remove(hints)

    async def add(self, hints: Hints, topics: set[str]) -> None:
        """Let `hints` know of `topics`."""
        unknown = {topic for topic in topics if topic not in self._watchers}
        for topic in topics - unknown:
            # Its subscription exists. Hints until now were sent before this stream began.
            hints.note(topic, self.number)
        for topic in topics:
            self._watchers.setdefault(topic, set()).add(hints)
        await self._send_command("subscribe", unknown)

    async def _remove(self, hints: Hints) -> None:
        unwatched = set()
        for topic in hints.topics:
            watchers = self._watchers.get(topic, set())
            watchers.discard(hints)
            if not watchers:
                self._watchers.pop(topic, None)
                self._sent_at.pop(topic, None)
                if waiting := self._later.pop(topic, None):
                    waiting.cancel()
                unwatched.add(topic)
        await self._send_command("unsubscribe", unwatched)

    async def _send_command(self, command: str, topics: set[str]) -> None:
        """Send a command, if connected: the next connection begins with all topics anyway."""
        if topics and self._pubsub is not None:
            # RuntimeError: the connection is just being closed.
            with suppress(RedisError, OSError, RuntimeError):
                await getattr(self._pubsub, command)(*topics)

    async def _listen(self) -> None:
        retry = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S)
        while True:
            try:
                async for topic in self._topics_hinted():
                    retry.succeeded()
                    self._note(topic)
            except (RedisError, OSError) as error:
                log.warning("live feed lost: %s", error, extra={"action": "live_feed_lost"})
            if _is_cancelled():
                return
            # Hints may be lost from now on: let every watcher read.
            for topic in list(self._watchers):
                self._notify_watchers(topic)
            if not self._watchers:
                # It is not needed until the next watcher.
                self._wanted.clear()
                await self._wanted.wait()
            await asyncio.sleep(retry.next_pause_s())

    async def _topics_hinted(self) -> AsyncIterator[str]:
        """Yield topics that are hinted at or newly subscribed to, until the connection breaks."""
        client = Redis.from_url(
            self._url,
            socket_connect_timeout=2,
            retry=RedisRetry(NoBackoff(), 0),
            decode_responses=True,
        )
        async with client, client.pubsub() as pubsub:
            try:
                await pubsub.subscribe(_OWN_TOPIC)
                self._pubsub, self.connected = pubsub, True
                # From here on watchers subscribe to new topics themselves: none is forgotten.
                await self._send_command("subscribe", set(self._watchers))
                while not _is_cancelled():
                    message = await pubsub.get_message(timeout=_PING_S)
                    if message is None:
                        await pubsub.ping()
                    elif topic := await self._topic_of(message):
                        yield topic
            finally:
                self._pubsub, self.connected = None, False

    async def _topic_of(self, message: dict[str, Any]) -> str | None:
        topic: str = message["channel"]
        if message["type"] == "unsubscribe" and topic in self._watchers:
            # A new watcher arrived while the last one was leaving.
            await self._send_command("subscribe", {topic})
        # The first word of a subscription is a hint too: it may have come too late for one.
        return topic if message["type"] in {"message", "subscribe"} else None

    def _note(self, topic: str) -> None:
        """Notify the watchers of `topic`, now or together with hints that follow shortly."""
        if topic in self._later or topic not in self._watchers:
            return
        loop = asyncio.get_running_loop()
        together_s = min(MOST_TOGETHER_S, self._streams * TOGETHER_A_STREAM_S)
        rest_s = self._sent_at.get(topic, -math.inf) + together_s - loop.time()
        if rest_s > 0:
            self._later[topic] = loop.call_later(rest_s, self._notify_watchers, topic)
        else:
            self._notify_watchers(topic)

    def _notify_watchers(self, topic: str) -> None:
        if waiting := self._later.pop(topic, None):
            waiting.cancel()
        self._sent_at[topic] = asyncio.get_running_loop().time()
        self.number += 1
        for hints in self._watchers.get(topic, ()):
            hints.note(topic, self.number)


def _is_cancelled() -> bool:
    """Whether this task was cancelled although redis-py, while connecting, went on regardless."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, Feed] = WeakKeyDictionary()


def feed() -> Feed:
    """Return the feed of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _feeds:
        _feeds[loop] = Feed(settings.REDIS_URL)
    return _feeds[loop]
