"""A relay to a port of this machine that can stop delivering, silently, as a network does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

_PIECE = 1 << 16


class CuttableRelay:
    """A relay from a listening socket to 127.0.0.1:`target`. `cut` stops it."""

    def __init__(self, listener: socket.socket, target: int) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._flows = asyncio.Event()
        self._flows.set()
        serving = self._serve(listener)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(10)

    def cut(self) -> None:
        """Deliver nothing any more."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def restore(self) -> None:
        """Deliver again."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """End all connections."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, listener: socket.socket) -> asyncio.Server:
        return await asyncio.start_server(self._carry, sock=listener)

    async def _end(self) -> None:
        self._server.close()
        self._flows.set()
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:
            await asyncio.sleep(0.01)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await self._flows.wait()
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.append(far_writer)
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
            self._writers.remove(far_writer)
        self._writers.remove(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
