"""The next call waits while those under way will return too much."""

from __future__ import annotations

import asyncio

import pytest

from monarch_client.runner.scripts.mportal_proxies import in_flight
from monarch_client.runner.scripts.mportal_proxies.in_flight import InFlight

MB = 1 << 20


def test_calls_under_way_are_judged_by_former_results_of_their_endpoint() -> None:
    calls = InFlight()
    for endpoint, size in (("large", 40 * MB), ("small", 100), ("failing", 0)):
        calls.begin(endpoint)
        calls.end(endpoint, size)
        calls.begin(endpoint)
        calls.begin(endpoint)
    assert calls.expected == 2 * 40 * MB + 2 * 100 + 2 * MB
    calls.end("large", 0)
    assert calls.expected == 40 * MB + 2 * 100 + 2 * MB


def test_the_next_call_waits_for_a_result() -> None:
    async def story() -> None:
        calls = InFlight()
        for _ in range(128):
            calls.begin("step")
        waiting = asyncio.ensure_future(calls.wait_for_room())
        await asyncio.sleep(0)
        assert not waiting.done()
        calls.end("step", 10)
        await asyncio.wait_for(waiting, 10)

    asyncio.run(story())


def test_calls_that_wait_for_one_another_are_all_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "_LONGEST_WAIT_S", 0.01)

    async def story() -> None:
        calls = InFlight()
        for _ in range(130):
            await asyncio.wait_for(calls.wait_for_room(), 10)
            calls.begin("barrier")

    asyncio.run(story())
