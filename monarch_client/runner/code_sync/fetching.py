"""Fetch the blocks of a tree from the parent of this rank, or from an ancestor that has them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError, CodeError, FormatError
from monarch_client.runner.code.manifest import MAX_BLOCK_BYTES
from monarch_client.runner.code_sync import messages
from monarch_client.runner.code_sync.fan_out import ancestors_of

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Any, Callable, Sequence, Tuple

    from monarch_client.runner.code.generations import Generations
    from monarch_client.runner.code_sync.block_service import Arrivals
    from monarch_client.runner.code_sync.streams import Dial, OpenStream

    _Arrived = Tuple[bytes, str]

# A parent that sends nothing for so long is passed over; rank 0 has more patience, being the last.
_SILENCE_S = 10.0
_LAST_SILENCE_S = 60.0
# Blocks that have arrived together are hashed and written together, since most are small.
_MOST_WAITING = 64
# A program may damage blocks while a generation is made of them.
_TRIES = 3


class Fetcher:
    """The fetcher of one rank, which uses `thread` for all that blocks."""

    def __init__(
        self,
        rank: int,
        generations: Generations,
        thread: Executor,
        dial: Dial,
        arrivals: Arrivals,
    ) -> None:
        self._rank = rank
        self._generations = generations
        self._thread = thread
        self._dial = dial
        self._arrivals = arrivals

    async def prepare(self, tree: str, hints: Sequence[str]) -> None:
        """Fetch a tree and make its generation. CodeError contains the reason if that fails.

        `hints` are folders of which this rank may lack the manifest.
        """
        given_up = threading.Event()
        for number in range(_TRIES):
            if self._rank:
                await self._fetch(tree, hints)
            try:
                await self.call(self._generations.prepare, tree, given_up)
            except asyncio.CancelledError:
                # The thread is needed for a newer tree.
                given_up.set()
                raise
            except BlockMissingError:
                # Rank 0 has no ancestor: the laptop sends the block with the next sync.
                if number == _TRIES - 1 or not self._rank:
                    raise
            else:
                return

    async def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do on the thread what blocks. CodeError also for a full disk."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, work, *arguments)
        except OSError as error:
            raise CodeError(f"it cannot be stored: {error.strerror or error}") from error

    async def _fetch(self, tree: str, hints: Sequence[str]) -> None:
        store, trees = self._generations.store, self._generations.trees
        sources = _Sources(self._dial, ancestors_of(self._rank))
        self._arrivals.begin()
        try:
            await self._get(sources, store.missing([tree, *hints]))
            while True:
                folders = await self.call(trees.missing_folders, tree)
                if not folders:
                    break
                await self._get(sources, folders)
            await self._get(sources, await self.call(trees.missing_blocks, tree))
        finally:
            self._arrivals.end()
            sources.close()

    async def _get(self, sources: _Sources, digests: Sequence[str]) -> None:
        """Fetch blocks, and go on with the next ancestor after a failure. CodeError: all failed."""
        missing = digests
        while missing:
            try:
                await self._get_from(await sources.stream(), sources.silence_s, missing)
            except (OSError, EOFError, asyncio.TimeoutError, FormatError) as error:
                sources.pass_over(error)
            missing = self._generations.store.missing(missing)

    async def _get_from(self, stream: OpenStream, silence_s: float, digests: Sequence[str]) -> None:
        for start in range(0, len(digests), messages.MOST_NAMES):
            stream.writer.write(messages.pack(need=digests[start : start + messages.MOST_NAMES]))
        arrived: asyncio.Queue[_Arrived] = asyncio.Queue(_MOST_WAITING)
        reading = asyncio.ensure_future(_read(stream.reader, digests, arrived))
        try:
            waiting = len(digests)
            while waiting:
                batch = await _next_of(arrived, reading, silence_s)
                await self._add(batch)
                waiting -= len(batch)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _add(self, batch: list[_Arrived]) -> None:
        store = self._generations.store

        def add() -> None:
            for content, digest in batch:
                store.add(content, digest)

        await self.call(add)
        for _, digest in batch:
            self._arrivals.report(digest)


class _Sources:
    """The ancestors of a rank, of which one is connected."""

    def __init__(self, dial: Dial, ranks: list[int]) -> None:
        self._dial = dial
        self._ranks = ranks
        self._stream: OpenStream | None = None

    @property
    def silence_s(self) -> float:
        """The seconds for which the connected one may send nothing."""
        return _SILENCE_S if len(self._ranks) > 1 else _LAST_SILENCE_S

    async def stream(self) -> OpenStream:
        """Return a stream to the nearest ancestor that has not failed."""
        if self._stream is None:
            self._stream = await self._dial(self._ranks[0], "blocks")
        return self._stream

    def pass_over(self, error: Exception) -> None:
        """Go on with the next ancestor. CodeError: there is none."""
        self.close()
        rank = self._ranks.pop(0)
        if not self._ranks:
            why = str(error) or type(error).__name__
            raise CodeError(f"node {rank} did not send the code: {why}") from error

    def close(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._stream.writer.transport.abort()
            self._stream = None


async def _read(
    reader: asyncio.StreamReader, digests: Sequence[str], arrived: asyncio.Queue[_Arrived]
) -> None:
    for digest in digests:
        await arrived.put((await _block(reader, digest), digest))


async def _next_of(
    arrived: asyncio.Queue[_Arrived], reading: asyncio.Task[None], silence_s: float
) -> list[_Arrived]:
    """Return all blocks that have arrived, at least one; raise what ended the reading before.

    TimeoutError: none arrives for so long.
    """
    getting = asyncio.ensure_future(arrived.get())
    either: set[asyncio.Future[Any]] = {getting, reading}
    try:
        await asyncio.wait(either, timeout=silence_s, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            if not reading.done():
                raise asyncio.TimeoutError
            reading.result()
        batch = [await getting]
    finally:
        getting.cancel()
    while not arrived.empty():
        batch.append(arrived.get_nowait())
    return batch


async def _block(reader: asyncio.StreamReader, digest: str) -> bytes:
    """Return the next block. EOFError, OSError or FormatError: it does not come."""
    message = await messages.receive(reader)
    if message is None or message.get("block") != digest:
        raise BrokenPipeError("it does not have a block of it")
    size = message.get("size")
    if type(size) is not int or not 0 <= size <= MAX_BLOCK_BYTES:
        raise FormatError("a block is too large")
    return await reader.readexactly(size)
