"""One switch at one rank and the ranks below it: all of them prepare, and later all switch.

The service `switch` carries it from a rank to its children, by lines of JSON:

| from | message | meaning |
|---|---|---|
| parent | `prepare` `hints` | Make the generation of this tree. |
| child | `ready` | So many more ranks have it. |
| child | `busy` | It is still at work. |
| child | `prepared` `failures` | All ranks below have it, or failed: reasons by rank. |
| parent | `commit` or `abort` | All ranks have it: switch. Or: stay as you are. |
| child | `switched` | The ranks that have switched. |
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code_sync import messages
from monarch_client.runner.code_sync.fan_out import children_of
from monarch_client.runner.vocabulary.messages import MALFORMED

if TYPE_CHECKING:
    from typing import Any, Awaitable, Coroutine, Sequence

    from monarch_client.runner.code.generations import Generations
    from monarch_client.runner.code_sync.fetching import Fetcher
    from monarch_client.runner.code_sync.streams import Dial, OnReady, OpenStream

BUSY_S = 2.0
_SILENCE_S = 20.0
# A process that was killed is started again within this time.
_RETRY_S = 6.0
_PAUSE_S = 0.2
_MOST_ENDS = 3
# A rank that has not put a block, file or folder in its place for so long does not get on.
STUCK_S = 60.0
_LOOKS = 30
_NOT_SWITCHABLE = "its work directory is an ordinary folder: submit the job with portal.gateway"


class Member:
    """One rank of so many, with what it needs to take part in switches."""

    def __init__(
        self, rank: int, ranks: int, generations: Generations, fetcher: Fetcher, dial: Dial
    ) -> None:
        self.rank = rank
        self.ranks = ranks
        self.generations = generations
        self.fetcher = fetcher
        self.dial = dial


class Round:
    """A switch to a tree. `prepare` comes first, then `commit` or nothing, then `close`."""

    def __init__(self, member: Member, tree: str, hints: Sequence[str], on_ready: OnReady) -> None:
        self._member = member
        self._tree = tree
        self._hints = list(hints)
        self._on_ready = on_ready
        self._children: dict[int, OpenStream] = {}
        self._counts: dict[int, _Count] = {}
        self._is_closed = False

    async def prepare(self) -> dict[int, str]:
        """Have this rank and those below prepare; return the reasons of those that cannot.

        Without any, all streams to children were open at the end; `lost` are those that end later.
        """
        children = children_of(self._member.rank, self._member.ranks)
        failures = await _all_of(self._prepare_own(), *map(self._prepare_child, children))
        while not failures and (lost := self.lost):
            failures = await _all_of(*map(self._prepare_child, lost))
        return failures

    @property
    def lost(self) -> list[int]:
        """Return the children whose streams have ended: they do not get a decision."""
        return [rank for rank, stream in self._children.items() if stream.reader.at_eof()]

    async def commit(self) -> list[int]:
        """Have all switch; return the ranks that are known to have done it."""
        own = self._commit_own()
        found = await asyncio.gather(own, *map(self._commit_child, self._children.values()))
        return [rank for switched in found for rank in switched]

    def abort(self) -> None:
        """Have all ranks below stay as they are."""
        for stream in self._children.values():
            stream.writer.write(messages.pack(abort=self._tree))

    def give_up(self) -> None:
        """Have the preparation end, here and on the ranks below."""
        if not self._is_closed:
            self.abort()
            self.close()

    def close(self) -> None:
        """Close the streams to the ranks below. Without a decision, they request it."""
        self._is_closed = True
        for stream in self._children.values():
            stream.writer.close()

    async def _prepare_own(self) -> dict[int, str]:
        member = self._member
        if member.generations.current is None:
            return {member.rank: _NOT_SWITCHABLE}
        try:
            await self._watch(member.fetcher.prepare(self._tree, self._hints))
        except CodeError as error:
            return {member.rank: str(error)}
        self._on_ready(1)
        return {}

    async def _watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Await work of this rank. CodeError: it does not get on, as on a disk that hangs."""
        generations = self._member.generations
        task = asyncio.ensure_future(work)
        try:
            progress, idle_s = generations.progress, 0.0
            while not task.done():
                await asyncio.wait({task}, timeout=STUCK_S / _LOOKS)
                former, progress = progress, generations.progress
                idle_s = idle_s + STUCK_S / _LOOKS if progress == former else 0.0
                if idle_s >= STUCK_S and not task.done():
                    raise CodeError(f"it has not got on for {STUCK_S:.0f} s: is its disk slow?")
            task.result()
        finally:
            task.cancel()

    async def _prepare_child(self, rank: int) -> dict[int, str]:
        """Have a child and the ranks below it prepare, again after its process has died."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _RETRY_S
        count = self._counts.setdefault(rank, _Count(self._on_ready))
        if rank in self._children:
            count.begin_again()
        # Before Python 3.12, `wait_for` may lose a cancellation.
        while not self._is_closed:
            try:
                stream = await self._open(rank)
            except OSError as error:
                if loop.time() > deadline:
                    return {rank: f"it does not answer: {error}"}
            else:
                failures = await self._talk(rank, stream, count)
                if failures is not None:
                    return failures
                deadline = loop.time() + _RETRY_S
            if count.ends >= _MOST_ENDS:
                return {rank: "its process ends again and again"}
            await asyncio.sleep(_PAUSE_S)
        return {rank: "the switch was given up"}

    async def _open(self, rank: int) -> OpenStream:
        stream = await self._member.dial(rank, "switch")
        former = self._children.pop(rank, None)
        if former is not None:
            former.writer.close()
        self._children[rank] = stream
        return stream

    async def _talk(self, rank: int, stream: OpenStream, count: _Count) -> dict[int, str] | None:
        """Return the failures of a child and the ranks below it; None: the stream has ended."""
        stream.writer.write(messages.pack(prepare=self._tree, hints=self._hints))
        try:
            while True:
                message = await _answer(stream)
                if "prepared" in message:
                    failures = message.get("failures") or {}
                    return {int(rank): str(reason) for rank, reason in failures.items()}
                count.add(int(message.get("ready", 0)))
        except asyncio.TimeoutError:
            return {rank: "it does not answer"}
        except (OSError, EOFError, *MALFORMED):
            count.begin_again()
            return None

    async def _commit_own(self) -> list[int]:
        member = self._member
        try:
            switching = member.fetcher.call(member.generations.switch, self._tree)
            await asyncio.wait_for(switching, _SILENCE_S)
        except (CodeError, asyncio.TimeoutError):
            # It prepared: only a rename was left. The head reports it as late.
            return []
        return [member.rank]

    async def _commit_child(self, stream: OpenStream) -> list[int]:
        try:
            stream.writer.write(messages.pack(commit=self._tree))
            while True:
                message = await _answer(stream)
                if "switched" in message:
                    return [int(rank) for rank in message["switched"]]
        except (OSError, EOFError, asyncio.TimeoutError, *MALFORMED):
            # The ranks below it find out from the head.
            return []


class _Count:
    """The ranks below a child that are ready, which are not counted twice after a second try."""

    def __init__(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready
        self.ends = 0
        self._reported = 0
        self._ready = 0

    def add(self, ready: int) -> None:
        """Count more ranks."""
        self._ready += ready
        if self._ready > self._reported:
            self._on_ready(self._ready - self._reported)
            self._reported = self._ready

    def begin_again(self) -> None:
        """Begin another try, after the end of a stream."""
        self.ends += 1
        self._ready = 0


async def _all_of(*works: Awaitable[dict[int, str]]) -> dict[int, str]:
    found = await asyncio.gather(*works)
    return {rank: reason for failures in found for rank, reason in failures.items()}


async def _answer(stream: OpenStream) -> dict[str, Any]:
    message = await asyncio.wait_for(messages.receive(stream.reader), _SILENCE_S)
    if message is None:
        raise ConnectionResetError("its process has ended")
    return message
