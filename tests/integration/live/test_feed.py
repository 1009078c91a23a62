"""The feed: one subscription for many streams, which outlives Redis itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from jobs.live.feed import LOOK_WITHOUT_FEED_S, Feed, Hints
from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.redis_server import RedisServer
from monarch_portal.embedded.server_paths import RedisPaths
from tests.embedded_servers import SERVERS

LONG_S = 20.0


class OwnRedis:
    """A Redis that a test may stop and start."""

    def __init__(self, root: Path) -> None:
        paths = RedisPaths(root, root.parent / "redis.log", SERVERS.root / "binaries")
        self.server = RedisServer(paths, server_account(root, os.getpid() % 100))
        self.url = paths.url

    def publish(self, topic: str) -> int:
        with redis.Redis.from_url(self.url) as client:
            return int(client.publish(topic, "{}"))


@pytest.fixture
def own_redis() -> Iterator[OwnRedis]:
    # The socket's path must be short, and reachable for the server's account.
    own = OwnRedis(SERVERS.root / "feed-redis")
    own.server.start()
    yield own
    own.server.stop()


async def until(hints: Hints, topic: str) -> None:
    """Wait until `topic` is hinted at."""

    async def hinted() -> None:
        while topic not in await hints.wait(LONG_S):
            pass

    await asyncio.wait_for(hinted(), LONG_S)


async def until_connected(feed: Feed, *, connected: bool = True) -> None:
    async def changed() -> None:
        while feed.connected is not connected:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(changed(), LONG_S)


def test_a_hint_reaches_every_stream_that_watches_its_topic_and_no_other(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with (
            feed.subscribe("t:1") as one,
            feed.subscribe("t:1", "t:2") as both,
            feed.subscribe("t:3") as other,
        ):
            for hints, topic in [(one, "t:1"), (both, "t:2"), (other, "t:3")]:
                await until(hints, topic)  # the subscription is active
            await both.wait(0.01)
            assert own_redis.publish("t:1") == 1
            await until(one, "t:1")
            await until(both, "t:1")
            assert await other.wait(0.01) == set()

    asyncio.run(scenario())


def test_a_topic_can_be_watched_later_and_is_released_with_its_last_watcher(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as first:
            await until(first, "t:1")
            async with feed.subscribe() as second:
                await second.watch("t:2")
                await until(second, "t:2")
                assert own_redis.publish("t:2") == 1
                await until(second, "t:2")
            while own_redis.publish("t:2"):
                await asyncio.sleep(0.01)
            assert own_redis.publish("t:1") == 1
        while own_redis.publish("t:1"):
            await asyncio.sleep(0.01)
        assert feed.connected

    asyncio.run(scenario())


def test_who_watches_what_others_watch_already_looks_at_once(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as first:
            await until(first, "t:1")
            # It has received no hint from between its own read and now.
            async with feed.subscribe("t:1") as second:
                assert await second.wait(0) == {"t:1"}
                assert second.number == feed.number

    asyncio.run(scenario())


def test_readers_who_come_and_go_share_one_connection_for_ever(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        with redis.Redis.from_url(own_redis.url) as client:
            for turn in range(60):
                async with feed.subscribe("t:1"):
                    await asyncio.sleep(0.001 * (turn % 3))
                    subscribed = [each for each in client.client_list() if int(each["sub"])]
                    assert len(subscribed) <= 1
            assert len(asyncio.all_tasks()) == 2

    asyncio.run(scenario())


def test_the_feed_ends_with_its_loop_at_whatever_moment_of_connecting(own_redis) -> None:
    async def scenario(turns: int) -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1"):
            for _ in range(turns):
                await asyncio.sleep(0)
        listener = feed._listener
        assert listener is not None
        listener.cancel()
        await asyncio.wait({listener}, timeout=5)
        assert listener.done()

    for turns in range(25):
        asyncio.run(scenario(turns))


def test_many_hints_are_one_flag_for_a_stream_that_is_slow(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as hints:
            await until(hints, "t:1")
            for _ in range(1000):
                own_redis.publish("t:1")
            own_redis.publish("t:1")
            await until(hints, "t:1")
            assert len(hints._hinted) <= 1

    asyncio.run(scenario())


def test_hints_that_arrive_together_are_sent_together_and_the_last_one_is_sent(
    own_redis, monkeypatch
) -> None:
    monkeypatch.setattr("jobs.live.feed.MOST_TOGETHER_S", 0.5)
    monkeypatch.setattr("jobs.live.feed.TOGETHER_A_STREAM_S", 0.5)

    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as hints:
            await until(hints, "t:1")
            before = hints.number
            for _ in range(1000):
                own_redis.publish("t:1")
            await until(hints, "t:1")
            # Whatever a slow machine makes of it: far fewer than there were.
            assert before < hints.number < before + 200
            reported = hints.number
            own_redis.publish("t:1")
            await until(hints, "t:1")
            assert hints.number > reported

    asyncio.run(scenario())


def test_a_hint_that_waits_for_others_is_released_with_the_last_watcher(
    own_redis, monkeypatch
) -> None:
    monkeypatch.setattr("jobs.live.feed.MOST_TOGETHER_S", 1000.0)
    monkeypatch.setattr("jobs.live.feed.TOGETHER_A_STREAM_S", 1000.0)

    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as hints:
            await until(hints, "t:1")
            own_redis.publish("t:1")
            async with asyncio.timeout(LONG_S):
                while not feed._later:
                    await asyncio.sleep(0.01)
        assert not feed._later
        assert not feed._sent_at

    asyncio.run(scenario())


def test_the_feed_outlives_a_restart_of_redis_and_every_watcher_reads_again(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1", "t:2") as hints:
            await until(hints, "t:1")
            own_redis.server.stop()
            await until_connected(feed, connected=False)
            # Without it everything counts as changed, soon.
            began = asyncio.get_running_loop().time()
            assert await hints.wait(LONG_S) == {"t:1", "t:2"}
            assert asyncio.get_running_loop().time() - began < LOOK_WITHOUT_FEED_S * 5
            own_redis.server.start()
            await until_connected(feed)
            await until(hints, "t:2")
            while not own_redis.publish("t:2"):
                await asyncio.sleep(0.01)
            await until(hints, "t:2")

    asyncio.run(scenario())


def test_a_stream_opened_while_redis_is_away_gets_its_hints_later(own_redis) -> None:
    async def scenario() -> None:
        own_redis.server.stop()
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as hints:
            assert await hints.wait(LONG_S) == {"t:1"}
            own_redis.server.start()
            await until_connected(feed)
            while not own_redis.publish("t:1"):
                await asyncio.sleep(0.01)
            await until(hints, "t:1")

    asyncio.run(scenario())


def test_a_topic_watched_at_any_moment_of_connecting_is_subscribed(own_redis) -> None:
    async def scenario(turns: int) -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as hints:
            for _ in range(turns):
                await asyncio.sleep(0)
            await hints.watch("t:2")
            await until(hints, "t:2")
            assert own_redis.publish("t:2") == 1

    for turns in range(25):
        asyncio.run(scenario(turns))


def test_a_topic_that_is_released_and_watched_again_at_once_is_subscribed(own_redis) -> None:
    async def scenario() -> None:
        feed = Feed(own_redis.url)
        async with feed.subscribe("t:1") as keeper:
            await until(keeper, "t:1")

            async def come_and_go() -> None:
                async with feed.subscribe("t:2") as hints:
                    await hints.wait(0.001)

            await asyncio.gather(*(come_and_go() for _ in range(50)))
            async with feed.subscribe("t:2") as hints:
                while not own_redis.publish("t:2"):
                    await asyncio.sleep(0.001)
                await until(hints, "t:2")

    asyncio.run(scenario())
