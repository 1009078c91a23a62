"""Ports of this machine whose connections lead to ports that a node reaches."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from monarch_client.attaching.errors import AttachError
from monarch_client.gateway.forward import Forward
from monarch_client.gateway.node_stream import open_node_stream_async
from monarch_client.runner.node_streams.messages import (
    DATA,
    END,
    EXIT,
    MAX_BYTES,
    TAKEN,
    WINDOW_BYTES,
    pack,
    receive,
    taken_bytes,
)

_LOOPBACK = "127.0.0.1"
_BACKLOG = 64


class PortInUseError(AttachError):
    """A port of this machine that cannot be listened on."""

    code = "port_in_use"


_Carry = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class ForwardedPorts:
    """The ports of one session. They are open from the begin; `serve` lets connections in."""

    def __init__(self, forwards: Sequence[Forward], on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        self._listeners: list[tuple[Forward, socket.socket]] = []
        self._loop = asyncio.new_event_loop()
        self._is_serving = False
        # asyncio itself has no reference to a connection's task once its client is gone.
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            for forward in forwards:
                self._listeners.append((forward, _listener(forward)))
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> list[tuple[Forward, str, int]]:
        """The forwards with the addresses that listen here."""
        return [(each, *listener.getsockname()[:2]) for each, listener in self._listeners]

    def serve(self, node_socket: Path, rank: int) -> None:
        """Begin to carry connections, in a thread."""
        self._is_serving = True
        work = self._serve(node_socket, rank)
        threading.Thread(target=self._loop.run_until_complete, args=(work,), daemon=True).start()

    def close(self) -> None:
        """Close the ports; the thread ends with the process."""
        for _, listener in self._listeners:
            listener.close()
        if not self._is_serving:
            self._loop.close()

    async def _serve(self, node_socket: Path, rank: int) -> None:
        for forward, listener in self._listeners:
            carry = _carrier(forward, node_socket, rank, self._on_failure)
            begin = functools.partial(self._begin, carry)
            await asyncio.start_server(begin, sock=listener, limit=MAX_BYTES)
        await asyncio.Event().wait()

    def _begin(
        self, carry: _Carry, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.ensure_future(carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _listener(forward: Forward) -> socket.socket:
    bind = forward.bind or _LOOPBACK
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bind, forward.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        why = error.strerror or str(error)
        raise PortInUseError(
            f"Port {forward.port} of {bind} cannot be used here: {why}. Choose another one, such "
            f"as -L 0:{forward.host}:{forward.host_port}"
        ) from error
    return listener


def _carrier(
    forward: Forward, node_socket: Path, rank: int, on_failure: Callable[[str], None]
) -> _Carry:
    """Return what serves a connection to a port here."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to = {"host": forward.host, "port": forward.host_port}
        try:
            _, remote, out = await open_node_stream_async(node_socket, rank, "forward", **to)
        except (AttachError, OSError) as error:
            on_failure(str(error))
            writer.transport.abort()
            return
        try:
            await _Carried(reader, writer, remote, out).run()
        except (OSError, EOFError):
            pass  # one of both ends is gone
        finally:
            out.transport.abort()
            writer.transport.abort()

    return carry


class _Carried:
    """A local connection and its stream."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        remote: asyncio.StreamReader,
        out: asyncio.StreamWriter,
    ) -> None:
        self._reader, self._writer, self._remote, self._out = reader, writer, remote, out
        self._free = WINDOW_BYTES
        self._has_room = asyncio.Event()

    async def run(self) -> None:
        """Carry bytes until both directions have ended. OSError, EOFError: one end was lost."""
        sending = asyncio.ensure_future(self._send())
        receiving = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                # A client that has reset its connection takes nothing more.
                sending.result()
            await receiving
        finally:
            for way in (sending, receiving):
                way.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _send(self) -> None:
        while content := await self._reader.read(MAX_BYTES):
            while self._free < len(content):
                self._has_room.clear()
                await self._has_room.wait()
            self._free -= len(content)
            self._out.write(pack(DATA, content))
            await self._out.drain()
        self._out.write(pack(END))

    async def _receive(self) -> None:
        while True:
            kind, content = await receive(self._remote)
            if kind == DATA:
                self._writer.write(content)
                await self._writer.drain()
            elif kind == TAKEN:
                self._free += taken_bytes(content)
                self._has_room.set()
            elif kind == END:
                self._writer.write_eof()
            elif kind == EXIT:
                break
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
