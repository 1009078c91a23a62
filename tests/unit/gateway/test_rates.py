"""Token buckets: how long those wait who share one, and what a session counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobs.actions.attempts.gateway_streams import Traffic
from jobs.gateway import rates
from jobs.gateway.exchange import Exchange
from jobs.gateway.rates import Bucket, Meter
from jobs.gateway.streams import SESSION_MESSAGES_PER_S, SessionStream
from jobs.statuses import GatewayKind


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses, during which the clock goes on."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 3))

    monkeypatch.setattr(rates.asyncio, "sleep", sleep)
    monkeypatch.setattr(rates.time, "monotonic", lambda: 100 + sum(pauses))
    return pauses


def test_a_second_passes_at_once_and_more_at_the_rate(slept: list[float]) -> None:
    async def carry() -> None:
        bucket = Bucket(1000)
        for _ in range(4):
            await bucket.take(500)

    asyncio.run(carry())
    assert slept == [0.5, 0.5]


def test_sessions_of_one_user_share_their_bucket(slept: list[float]) -> None:
    async def carry() -> None:
        shared = Bucket(1000)
        first, second = Meter((shared,)), Meter((shared,))
        await first.up(1000)
        await second.down(500)

    asyncio.run(carry())
    assert slept == [0.5]


def test_bytes_are_limited_for_each_user_and_each_job(slept: list[float], settings: Any) -> None:
    settings.MPORTAL_GATEWAY_MB_PER_S = 3
    exchange = Exchange("instance")
    mine, elsewhere, theirs = (exchange.meter_of(*ids) for ids in ((1, 7), (1, 8), (2, 7)))

    async def carry() -> None:
        await mine.up(3_000_000)
        # The user's bucket is empty, and then the job's.
        await elsewhere.up(1_500_000)
        await theirs.down(3_000_000)

    asyncio.run(carry())
    assert slept == [0.5, 0.5]


def test_without_a_rate_nothing_waits_and_everything_is_counted(slept: list[float]) -> None:
    meter = Meter((Bucket(0),))
    asyncio.run(meter.up(10**9))
    asyncio.run(meter.down(7))
    traffic = meter.read()
    assert (traffic, meter.read(), slept) == (Traffic(10**9, 7), Traffic(0, 0), [])
    meter.put_back(traffic)
    assert meter.read() == traffic


def test_messages_of_a_session_are_read_at_a_rate_by_number_and_size(slept: list[float]) -> None:
    rate = int(SESSION_MESSAGES_PER_S)
    close = '{"op": "close"}'
    large = json.dumps({"op": "close", "padding": "x" * 1024 * rate})

    async def read(texts: list[str]) -> int:
        async def connection() -> AsyncIterator[str]:
            for text in texts:
                yield text

        opened: Any = connection()
        stream = SessionStream(opened, 1, 1, Meter(), GatewayKind.ATTACH)
        return len([message async for message in stream.messages()])

    assert asyncio.run(read([close] * rate)) == rate
    assert slept == []
    assert asyncio.run(read([close] * (rate + 1))) == rate + 1
    assert slept == [pytest.approx(1 / rate)]
    slept.clear()
    assert asyncio.run(read([large])) == 1
    assert len(slept) == 1
