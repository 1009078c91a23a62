"""The service `blocks` of every node: its children in the tree fetch blocks from it.

A request is a line `need`, as in `messages`; each block follows its own line. A block that this
node is fetching itself is sent as soon as it is here. `missing` is the answer for another one,
and ends the stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError
from monarch_client.runner.code.manifest import is_digest
from monarch_client.runner.code_sync import messages

if TYPE_CHECKING:
    from typing import Any

    from monarch_client.runner.code.store import Store
    from monarch_client.runner.code_sync.streams import Stream


class Arrivals:
    """The blocks that this node is fetching, for those that wait for them."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._fetches = 0

    def begin(self) -> None:
        """Note that a fetch begins: blocks may arrive until `end`."""
        self._fetches += 1

    def end(self) -> None:
        """Note that a fetch has ended: what has not arrived will not."""
        self._fetches -= 1
        if not self._fetches:
            for digest in list(self._waiting):
                self.report(digest)

    def report(self, digest: str) -> None:
        """Wake those that wait for a block."""
        for future in self._waiting.pop(digest, ()):
            if not future.done():
                future.set_result(None)

    async def wait(self, digest: str) -> None:
        """Wait until a block arrives, or none is fetched any more."""
        if self._fetches:
            future = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(digest, []).append(future)
            await future


class BlockService:
    """The sender of blocks to other nodes; `sent_bytes` counts them."""

    def __init__(self, store: Store, arrivals: Arrivals) -> None:
        self.sent_bytes = 0
        self._store = store
        self._arrivals = arrivals

    async def serve(self, stream: Stream) -> None:
        """Send blocks until the other node closes the stream."""
        await stream.accept()
        while True:
            message = await messages.receive(stream.reader)
            if message is None:
                return
            digests = messages.names_in(message, "need")
            while digests:
                contents = await self._contents(digests)
                if not await self._send(stream.writer, digests, contents):
                    return
                del digests[: len(contents)]

    async def _send(
        self, writer: asyncio.StreamWriter, digests: list[Any], contents: list[bytes]
    ) -> bool:
        """Send the first blocks together, or report that the first one is missing: False."""
        lines = [
            messages.pack(block=digest, size=len(content)) + content
            for digest, content in zip(digests, contents)
        ]
        writer.write(b"".join(lines) or messages.pack(missing=digests[0]))
        await writer.drain()
        self.sent_bytes += sum(map(len, contents))
        return bool(contents)

    async def _contents(self, digests: list[Any]) -> list[bytes]:
        """Return the first of these blocks, as many as are here and small; [] without the first."""
        if not is_digest(digests[0]):
            return []
        if not self._store.has(digests[0]):
            await self._arrivals.wait(digests[0])
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._read, digests)

    def _read(self, digests: list[Any]) -> list[bytes]:
        contents: list[bytes] = []
        size = 0
        with contextlib.suppress(BlockMissingError):
            for digest in digests:
                if size >= messages.BATCH_BYTES or not is_digest(digest):
                    break
                if contents and not self._store.has(digest):
                    break
                contents.append(self._store.read(digest))
                size += len(contents[-1])
        return contents
