"""Reads that many streams need at the same moment are done once, and no stream misses one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from jobs.live import shared_reads
from jobs.live.shared_reads import Common, Newest, SharedReads


class Source:
    """A source that counts its reads, and whose answer a test releases."""

    def __init__(self) -> None:
        self.content = b""
        self.count = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def at(self, key: str) -> Common[bytes]:
        return Common(key, lambda: self.content)

    async def run(self, read: Callable[[], bytes]) -> bytes:
        self.count += 1
        content = read()
        await self.gate.wait()
        return content

    def reads(self) -> SharedReads[bytes]:
        return SharedReads(self.run, len)


def test_all_who_stand_at_one_place_share_one_read() -> None:
    async def scenario() -> None:
        source = Source()
        source.content = b"news"
        reads = source.reads()
        found = await asyncio.gather(
            *(reads.get(source.at("1:7"), Newest(3), 3) for _ in range(50))
        )
        assert found == [(b"news", True)] * 50
        assert source.count == 1
        await reads.get(source.at("1:8"), Newest(3), 3)
        assert source.count == 2

    asyncio.run(scenario())


def test_what_a_read_did_not_find_before_a_hint_is_looked_for_again() -> None:
    async def scenario() -> None:
        source = Source()
        reads = source.reads()
        assert await reads.get(source.at("1:7"), Newest(3), 3) == (b"", True)
        source.content = b"news"
        assert await reads.get(source.at("1:7"), Newest(4), 4) == (b"news", True)

    asyncio.run(scenario())


def test_a_late_reader_gets_what_the_others_had_and_learns_that_there_is_more() -> None:
    async def scenario() -> None:
        source = Source()
        source.content = b"news"
        reads = source.reads()
        await reads.get(source.at("1:7"), Newest(3), 3)
        source.content = b"news and more"
        assert await reads.get(source.at("1:7"), Newest(5), 5) == (b"news", False)
        assert source.count == 1

    asyncio.run(scenario())


def test_a_read_under_way_when_a_hint_comes_does_not_count_as_the_newest() -> None:
    async def scenario() -> None:
        source = Source()
        source.gate.clear()
        reads = source.reads()
        early = asyncio.ensure_future(reads.get(source.at("1:7"), Newest(3), 3))
        await asyncio.sleep(0)
        late = asyncio.ensure_future(reads.get(source.at("1:7"), Newest(4), 4))
        await asyncio.sleep(0)
        source.gate.set()
        assert await early == (b"", True)
        assert await late == (b"", False)

    asyncio.run(scenario())


def test_a_failure_is_everybodys_and_is_not_kept() -> None:
    async def scenario() -> None:
        source = Source()
        reads = source.reads()

        def fail() -> bytes:
            raise RuntimeError("away")

        broken = Common("1:7", fail)
        found = await asyncio.gather(
            *(reads.get(broken, Newest(3), 3) for _ in range(5)), return_exceptions=True
        )
        assert [str(each) for each in found] == ["away"] * 5
        assert source.count == 1
        source.content = b"news"
        assert await reads.get(source.at("1:7"), Newest(3), 3) == (b"news", True)

    asyncio.run(scenario())


def test_a_reader_who_goes_away_does_not_end_the_read_of_the_others() -> None:
    async def scenario() -> None:
        source = Source()
        source.content = b"news"
        source.gate.clear()
        reads = source.reads()
        first = asyncio.ensure_future(reads.get(source.at("1:7"), Newest(3), 3))
        second = asyncio.ensure_future(reads.get(source.at("1:7"), Newest(3), 3))
        await asyncio.sleep(0)
        first.cancel()
        source.gate.set()
        assert await second == (b"news", True)

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 100_000])
def test_what_is_kept_is_bounded_in_number_and_in_bytes(size, monkeypatch) -> None:
    monkeypatch.setattr(shared_reads, "MOST_BYTES", 1_000_000)

    async def scenario() -> None:
        source = Source()
        source.content = b"x" * size
        reads = source.reads()
        for number in range(shared_reads.MOST_KEPT + 100):
            await reads.get(source.at(f"1:{number}"), Newest(3), 3)
        assert len(reads._reads) <= shared_reads.MOST_KEPT
        assert sum(read.size for read in reads._reads.values()) == reads._bytes <= 1_000_000

    asyncio.run(scenario())


def test_who_looks_without_a_hint_is_not_given_an_old_nothing() -> None:
    async def scenario() -> None:
        source = Source()
        reads = source.reads()
        await reads.get(source.at("1:7"), Newest(3), 3)
        source.content = b"news"
        assert await reads.get(source.at("1:7"), Newest(3, most_age_s=60), 3) == (b"", True)
        assert await reads.get(source.at("1:7"), Newest(3, most_age_s=0), 3) == (b"news", True)

    asyncio.run(scenario())


def test_what_was_read_long_ago_is_read_again_though_it_found_something(monkeypatch) -> None:
    async def scenario() -> None:
        source = Source()
        source.content = b"news"
        reads = source.reads()
        await reads.get(source.at("1:7"), Newest(3), 3)
        source.content = b"removed"
        assert await reads.get(source.at("1:7"), Newest(3), 3) == (b"news", True)
        monkeypatch.setattr(shared_reads, "MOST_KEPT_S", -1)
        assert await reads.get(source.at("1:7"), Newest(3), 3) == (b"removed", True)

    asyncio.run(scenario())


def test_a_read_that_begins_now_is_the_newest_however_long_it_takes() -> None:
    async def scenario() -> None:
        reads = Source().reads()
        nothing = Newest(3, most_age_s=-1)
        assert await reads.get(Source().at("1:7"), nothing, 3) == (b"", True)

    asyncio.run(scenario())
