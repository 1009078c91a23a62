"""The service `code` of the head node: it takes a tree from a laptop, and has all ranks switch."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.code.errors import CodeError, FormatError
from monarch_client.runner.code.manifest import MAX_BLOCK_BYTES, is_digest
from monarch_client.runner.code_sync import messages

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Any, Awaitable, Callable, Coroutine, Sequence

    from monarch_client.runner.code.store import Store
    from monarch_client.runner.code.trees import Trees
    from monarch_client.runner.code_sync.streams import Stream

    # Reports how many ranks of how many have the tree.
    OnReady = Callable[[int, int], None]
    # Of a tree; with `True`, the result is awaited.
    KeptOf = Callable[[str, bool], Awaitable["Kept"]]
    Switch = Callable[[str, OnReady], Awaitable["Switched"]]

# A laptop that sends nothing, or takes nothing, for so long is given up: it may be suspended.
_SILENCE_S = 30.0


class Switched(NamedTuple):
    """The result of a switch. `failures` are reasons by rank; with any, no rank has switched.

    `late` are ranks that switch as soon as they reach the head again, and why.
    """

    ranks: int
    failures: dict[int, str]
    late: dict[int, str]


class ReplacedError(Exception):
    """A switch that was given up for a newer tree: no rank has switched."""


class Kept(NamedTuple):
    """The reason why a recovered attempt would not start with a tree, or "".

    `is_pending`: the portal, which may refuse it, has not answered.
    """

    problem: str
    is_pending: bool = False


class CodeService:
    """The receiver of trees. `switch` has all ranks switch to a tree, one tree after the other.

    `make_way` is called when a newer one begins to arrive, and `kept_of` returns whether the
    portal keeps a tree. What blocks runs on `thread`, whose executor has
    one: trees are for one thread at a time.
    """

    def __init__(
        self,
        trees: Trees,
        store: Store,
        thread: Executor,
        switch: Switch,
        kept_of: KeptOf,
        make_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._trees = trees
        self._store = store
        self._thread = thread
        self._switch = switch
        self._kept_of = kept_of
        self._make_way = make_way

    async def serve(self, stream: Stream) -> None:
        """Serve a laptop until it closes the stream, or until a tree fails."""
        await stream.accept()
        is_sound = True
        while is_sound:
            message = await messages.receive(stream.reader)
            if message is None:
                return
            if "sync" in message:
                incoming = _Incoming(stream.reader)
                answer = await _while_heard(stream, incoming, self._take(stream, incoming, message))
                # After a failure there may be blocks on their way that nobody waits for.
                is_sound = "failed" not in answer
                await _answer(stream, answer)
            elif is_digest(message.get("kept")):
                waiting = self._await_kept(message["kept"])
                await _answer(stream, await _while_heard(stream, _Incoming(stream.reader), waiting))

    async def _take(
        self, stream: Stream, incoming: _Incoming, message: dict[str, Any]
    ) -> dict[str, Any]:
        """Take up a tree, and switch to it; return the answer."""
        tree = message["sync"]
        self._make_way()
        try:
            folders = _names([tree, *messages.names_in(message, "folders")])
            if not await self._complete(stream, incoming, tree, folders):
                return {"dropped": tree}
            # The switch goes on whatever happens to the laptop.
            switching = self._switch(tree, functools.partial(_report, stream))
            switched = await asyncio.shield(asyncio.ensure_future(switching))
        except ReplacedError:
            reason = "A newer sync of this job has taken the place of this one before the switch."
            return {"failed": reason, "ranks": {}}
        except CodeError as error:
            return {"failed": f"The head node refused the code: {error}.", "ranks": {}}
        if switched.failures:
            reason = "No node has switched to the code, since some cannot."
            return {"failed": reason, "ranks": switched.failures}
        ranks = {"ranks": switched.ranks, "late": switched.late}
        kept = await self._kept_of(tree, False)
        return {"done": tree, **ranks, "unkept": kept.problem, "keeping": kept.is_pending}

    async def _await_kept(self, tree: str) -> dict[str, Any]:
        kept = await self._kept_of(tree, True)
        return {"kept": tree, "unkept": kept.problem}

    async def _complete(
        self, stream: Stream, incoming: _Incoming, tree: str, folders: Sequence[str]
    ) -> bool:
        """Receive the blocks that are missing; False if the laptop cannot send them any more."""
        missing = await self._blocking(self._store.missing, folders)
        while True:
            if missing and not await self._receive(stream, incoming, missing):
                return False
            # Those that the laptop has not named.
            missing = await self._blocking(self._trees.missing_folders, tree)
            if not missing:
                break
        missing = await self._blocking(self._trees.missing_blocks, tree)
        return not missing or await self._receive(stream, incoming, missing)

    async def _receive(self, stream: Stream, incoming: _Incoming, digests: Sequence[str]) -> bool:
        for start in range(0, len(digests), messages.MOST_NAMES):
            part = digests[start : start + messages.MOST_NAMES]
            # Written at once, so that the laptop never waits for the next line.
            stream.writer.write(messages.pack(need=part))
        batch: list[tuple[bytes, str]] = []
        size = 0
        for digest in digests:
            content = await incoming.block(digest)
            if content is None:
                return False
            batch.append((content, digest))
            size += len(content)
            if size >= messages.BATCH_BYTES or len(batch) >= messages.BATCH_BLOCKS:
                await self._blocking(self._add, batch)
                batch, size = [], 0
        await self._blocking(self._add, batch)
        return True

    def _add(self, batch: list[tuple[bytes, str]]) -> None:
        for content, digest in batch:
            self._store.add(content, digest)

    async def _blocking(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do what blocks. CodeError also for a full disk."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, work, *arguments)
        except OSError as error:
            raise CodeError(f"it cannot be stored: {error.strerror or error}") from error


class _Incoming:
    """The blocks that a laptop sends, with the time since which it has sent nothing."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        # None: nothing is awaited from it.
        self._silent_since: float | None = None

    @property
    def silence_s(self) -> float:
        """The seconds for which the laptop has sent nothing although a block is awaited."""
        return 0.0 if self._silent_since is None else self._loop.time() - self._silent_since

    async def block(self, digest: str) -> bytes | None:
        """Return the next block; None if the laptop cannot send it."""
        self._silent_since = self._loop.time()
        try:
            return await self._block(digest)
        finally:
            self._silent_since = None

    async def _block(self, digest: str) -> bytes | None:
        message = await messages.receive(self._reader)
        if message is None:
            raise EOFError
        if "changed" in message:
            return None
        size = message.get("size")
        if message.get("block") != digest or type(size) is not int:
            raise messages.MessageError("another block was expected")
        if not 0 <= size <= MAX_BLOCK_BYTES:
            raise FormatError(f"a block of {size:,} bytes is too large")
        return await self._content(size)

    async def _content(self, size: int) -> bytes:
        """Read so many bytes, each piece of which is a sign of life on a slow connection."""
        pieces = []
        while size:
            piece = await self._reader.read(size)
            if not piece:
                raise EOFError
            self._silent_since = self._loop.time()
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


async def _while_heard(
    stream: Stream, incoming: _Incoming, work: Coroutine[Any, Any, dict[str, Any]]
) -> dict[str, Any]:
    """Return the answer of a work, or a failure once the laptop has been silent for too long."""
    working = asyncio.ensure_future(work)
    try:
        while not working.done():
            await asyncio.wait({working}, timeout=min(messages.BUSY_S, _SILENCE_S))
            if working.done():
                break
            if incoming.silence_s >= _SILENCE_S:
                reason = f"The head node received nothing for {_SILENCE_S:g} s. Sync again."
                return {"failed": reason, "ranks": {}}
            if not stream.writer.is_closing():
                stream.writer.write(messages.pack(busy=True))
        return working.result()
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def _answer(stream: Stream, answer: dict[str, Any]) -> None:
    stream.writer.write(messages.pack(**answer))
    try:
        await asyncio.wait_for(stream.writer.drain(), _SILENCE_S)
    except asyncio.TimeoutError as error:
        raise ConnectionAbortedError("the laptop takes nothing") from error


def _names(found: Any) -> list[str]:
    if not isinstance(found, list) or not all(is_digest(each) for each in found):
        raise FormatError("a folder has no such name")
    return found


def _report(stream: Stream, ready: int, ranks: int) -> None:
    # Written, not awaited: a laptop that is gone does not delay the switch.
    if not stream.writer.is_closing():
        stream.writer.write(messages.pack(switching=True, ready=ready, of=ranks))
