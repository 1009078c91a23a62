"""The bytes of a caller, which are read before their receiver takes them, up to a limit.

So the end of the stream, and what else the caller sends, is noticed behind a receiver that waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.messages import (
    DATA,
    END,
    TAKEN,
    WINDOW_BYTES,
    MessageError,
    receive,
)

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.node_streams.opening import NodeStream


class CallerInput:
    """The input of one stream: `read` fills it, `feed` empties it."""

    def __init__(
        self,
        stream: NodeStream,
        on_other: Callable[[bytes, bytes], None] = lambda _kind, _content: None,
    ) -> None:
        self._stream = stream
        self._on_other = on_other
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._held = 0

    async def read(self) -> None:
        """Read messages until the stream ends. IncompleteReadError, or another error, then."""
        while True:
            kind, content = await receive(self._stream.reader)
            if kind == END:
                self._pieces.put_nowait(b"")
            elif kind != DATA:
                self._on_other(kind, content)
            elif content:
                self._held += len(content)
                if self._held > WINDOW_BYTES:
                    raise MessageError(f"more than {WINDOW_BYTES} bytes that were not taken")
                self._pieces.put_nowait(content)

    async def feed(self, writer: asyncio.StreamWriter) -> None:
        """Write the bytes until END; discard them once nothing reads them any more."""
        while True:
            content = await self._pieces.get()
            if not content:
                return
            if not writer.is_closing():
                writer.write(content)
                await asyncio.gather(writer.drain(), return_exceptions=True)
            self._held -= len(content)
            await self._stream.send(TAKEN, str(len(content)).encode())


async def complete(works: list[asyncio.Task[None]], reading: asyncio.Task[None]) -> None:
    """Wait for all works. The error of one of them, or of `reading`, which outlives them."""
    waiting = set(works)
    while waiting:
        done, _ = await asyncio.wait({*waiting, reading}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        waiting -= done


async def cancel(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
