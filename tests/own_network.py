"""A network namespace from which one port of this machine is reached, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tests.cluster.rig.spaces import NEW_NETWORK, run, unshare

T = TypeVar("T")
_PIECE = 1 << 16


class OwnNetwork:
    """Programs in it reach this machine's 127.0.0.1:`port` at the same address. Needs root."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._inside = _Thread()
        self._inside.call(_enter)
        self._listener = self._inside.call(lambda: socket.create_server(("127.0.0.1", port)))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._writers: list[asyncio.StreamWriter] = []
        self._flows = asyncio.Event()
        self._flows.set()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)

    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process in the network."""
        return self._inside.call(lambda: subprocess.Popen(argv, **options))

    def cut(self) -> None:
        """Deliver nothing any more, silently."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def restore(self) -> None:
        """Deliver again."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """End it."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._inside.end()

    async def _end(self) -> None:
        self._server.close()
        self._flows.set()
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:
            await asyncio.sleep(0.01)

    async def _serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._carry, sock=self._listener)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await self._flows.wait()
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._writers.append(far_writer)
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
            self._writers.remove(far_writer)
        self._writers.remove(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_PIECE):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


class _Thread:
    """A thread that makes calls: namespaces belong to threads, and children inherit them."""

    def __init__(self) -> None:
        self._call: Callable[[], Any] | None = None
        self._wake, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._result: Any = None
        threading.Thread(target=self._run, daemon=True).start()

    def call(self, work: Callable[[], T]) -> T:
        """Return what `work` returns in the thread; raise what it raises."""
        self._call = work
        self._wake.release()
        self._done.acquire()
        if isinstance(self._result, BaseException):
            raise self._result
        result: T = self._result
        return result

    def end(self) -> None:
        """End the thread."""
        self._call = None
        self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            if self._call is None:
                return
            try:
                self._result = self._call()
            except BaseException as error:  # noqa: BLE001 - raised by `call`
                self._result = error
            self._done.release()


def _enter() -> None:
    unshare(NEW_NETWORK)
    run("ip", "link", "set", "lo", "up")
