"""The nodes of an attempt in one event loop, joined by streams in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync.rank_code import RankCode
from monarch_client.runner.code_sync.receiving import Switched
from tests.code_trees import Model, write_out


class Wire(asyncio.Transport):
    """One direction of a connection in memory, into a reader."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader
        self._is_open = True

    def write(self, data: Any) -> None:
        if self._is_open and not self._reader._eof:
            self._reader.feed_data(bytes(data))

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._reader.feed_eof()

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return not self._is_open


def writer_into(reader: asyncio.StreamReader) -> asyncio.StreamWriter:
    """Return the writer whose bytes a reader gets."""
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop)
    return asyncio.StreamWriter(Wire(reader), protocol, None, loop)


@dataclass
class Stream:
    """One end of a stream: of the node that opened it, or of the one that serves it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, **fields: Any) -> None:
        self.answer.update(fields)
        self.accepted.set()


class CodeCluster:
    """The nodes of a job below a folder, all of which started with the same code.

    `on_dial` is called with the service, before a stream of it is opened between two ranks.
    """

    def __init__(self, folder: Path, ranks: int, model: Model) -> None:
        self.folder = folder
        self.ranks = ranks
        self.thread: Executor = ThreadPoolExecutor(1)
        self.nodes: dict[int, RankCode] = {}
        self.on_dial: Callable[[int, int, str], None] = lambda _rank, _to, _service: None
        # The streams of each node, to break them when it is killed.
        self._streams: dict[int, list[Stream]] = {}
        self._all_streams: list[Stream] = []
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        for rank in range(ranks):
            self.folder_of(rank).root.mkdir(parents=True)
            write_out(model, self.folder_of(rank).workdir)
            self.start(rank)
            generations = self.nodes[rank].generations
            generations.adopt(generations.record())

    def folder_of(self, rank: int) -> NodeFolder:
        """Return the folder of a node."""
        return NodeFolder(self.folder / f"rank-{rank}")

    def start(self, rank: int) -> None:
        """Start the process of a node."""

        async def dial(to: int, service: str, **fields: Any) -> Stream:
            return await self.dial(rank, to, service, fields)

        folder = self.folder_of(rank)
        generations = Generations(folder.code, folder.workdir)
        self.nodes[rank] = RankCode(rank, self.ranks, generations, dial, self.thread)
        self._streams[rank] = []
        self._tasks[rank] = set()

    async def restart(self, rank: int) -> None:
        """Start the process of a node again, which takes up what was left."""
        self.start(rank)
        await self.nodes[rank].switches.resume()

    def kill(self, rank: int) -> None:
        """Kill the process of a node: its streams break, and nothing of it goes on."""
        del self.nodes[rank]
        for task in self._tasks[rank]:
            task.cancel()
        for stream in self._streams[rank]:
            stream.reader.feed_eof()
            stream.writer.close()

    async def dial(self, rank: int, to: int, service: str, fields: dict[str, Any]) -> Stream:
        """Open a stream from one node to a service of another one."""
        self.on_dial(rank, to, service)
        if to not in self.nodes or rank not in self.nodes:
            raise ConnectionRefusedError("the connection was refused")
        near, far = asyncio.StreamReader(limit=2**18), asyncio.StreamReader(limit=2**18)
        served = Stream(far, writer_into(near), {"open": service, **fields})
        opened = Stream(near, writer_into(far))
        self._streams[rank].append(opened)
        self._streams[to].append(served)
        self._all_streams += (opened, served)
        node = self.nodes[to]
        services = {"blocks": node.blocks.serve, "switch": node.switches.serve}
        task = asyncio.get_running_loop().create_task(self._serve(services[service], served))
        self._tasks[to].add(task)
        await served.accepted.wait()
        opened.answer = served.answer
        return opened

    @staticmethod
    async def _serve(service: Any, stream: Stream) -> None:
        try:
            await service(stream)
        except (OSError, EOFError):
            pass
        finally:
            stream.writer.close()

    async def switch(self, tree: str) -> Switched:
        """Have the head switch all ranks to a tree that it has."""
        return await self.nodes[0].switches.switch(tree, lambda _ready, _ranks: None)

    def currents(self) -> list[str | None]:
        """Return the current tree of each node."""
        return [self.nodes[rank].generations.current for rank in sorted(self.nodes)]

    async def close(self) -> None:
        """End all that the nodes still do, also those that were killed."""
        for rank in list(self.nodes):
            await self.nodes[rank].switches.settle()
            self.kill(rank)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for stream in self._all_streams:
            stream.writer.close()
        self.thread.shutdown()
