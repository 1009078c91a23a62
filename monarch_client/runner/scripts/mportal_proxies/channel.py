"""A channel of messages that survives its connections: each message arrives once, in order.

Both sides number their messages and keep them until the other side acknowledges them. After a
reconnect each side sends what the other has not received. A frame is one byte for its kind, two
numbers and a payload:

    H  hello: JSON, the first frame of each side
    D  data: the number of the message, and the message
    A  acknowledgement: the number of the last message that was handled
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from typing import TYPE_CHECKING

from .codec import MESSAGE_LIMIT
from .outbox import KEEP_BYTES, Outbox

if TYPE_CHECKING:
    from typing import Any, Callable

    from .spill import Spill

VERSION = 1
_HEADER = struct.Struct("!cQQ")
_HELLO, _DATA, _ACKNOWLEDGEMENT = b"H", b"D", b"A"
_HELLO_LIMIT = 1 << 20
# Acknowledgements wait this long for more messages, or for this many bytes.
_ACKNOWLEDGE_AFTER_S = 0.02
_ACKNOWLEDGE_AFTER_BYTES = 1 << 20
_COPIED_BYTES = 1 << 16
# What is written ahead of what the connection takes. More would be a second copy of the outbox.
_WRITE_AHEAD = 1 << 20


class ChannelError(ConnectionError):
    """A connection that does not follow the protocol."""


async def send_hello(writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
    """Send the first frame of a connection."""
    text = json.dumps(hello).encode()
    writer.write(_HEADER.pack(_HELLO, 0, len(text)) + text)
    await writer.drain()


async def read_hello(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Return the other side's first frame. ChannelError: it is none."""
    kind, _, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    if kind != _HELLO or length > _HELLO_LIMIT:
        raise ChannelError("the other side does not speak the protocol of mesh proxies")
    try:
        hello = json.loads(await reader.readexactly(length))
    except (ValueError, RecursionError) as error:
        raise ChannelError("the other side's hello is malformed") from error
    if not isinstance(hello, dict) or hello.get("version") != VERSION:
        raise ChannelError(f"the other side does not speak version {VERSION} of the protocol")
    return hello


class Channel:
    """One end of a channel, in an event loop. `receive` gets each message once.

    Its owner calls `note_handled` for each message, in their order: what is not handled is not
    acknowledged, so that the other side sends at most KEEP_BYTES ahead.
    """

    def __init__(
        self,
        receive: Callable[[bytearray], None],
        limit: int = MESSAGE_LIMIT,
        spill: Spill | None = None,
    ) -> None:
        self.outbox = Outbox(spill)
        self.handled = 0
        self._received = self._unhandled = 0
        self._receive = receive
        self._limit = limit
        self._writer: asyncio.StreamWriter | None = None
        self._sent = 0
        self._is_behind = asyncio.Event()
        self._unacknowledged = 0
        self._timer: asyncio.TimerHandle | None = None
        self._progress = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._writer is not None

    @property
    def is_held(self) -> bool:
        """Whether it reads no further until a message was handled: the other side sent too much."""
        return self._unhandled >= KEEP_BYTES

    def send(self, message: bytes, substitute: bytes | None = None) -> None:
        """Send a message now, or at the next connection.

        `substitute` replaces it if it expires before it was acknowledged.
        """
        number = self.outbox.add(message, time.monotonic(), substitute)
        writer = self._writer
        if writer is None:
            return
        is_next = number == self._sent + 1
        if is_next and writer.transport.get_write_buffer_size() < _WRITE_AHEAD:
            self._write(writer, message)
        else:
            self._is_behind.set()

    def note_handled(self, message: bytearray) -> None:
        """Note that the oldest received message was handled; it is acknowledged soon."""
        self.handled += 1
        self._unhandled -= len(message)
        self._acknowledge_soon(len(message))
        self._notify()

    async def run(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: int
    ) -> None:
        """Serve a connection until it ends. `received`: the last number the other side handled.

        ConnectionError: it was cut, or does not follow the protocol.
        """
        self.disconnect()
        self.outbox.acknowledge(received)
        self._writer = writer
        self._sent = received
        self._notify()
        writer.transport.set_write_buffer_limits(_WRITE_AHEAD)
        self._is_behind.set()
        sending = asyncio.ensure_future(self._catch_up(writer))
        try:
            while self._writer is writer:
                await self._read(reader)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the connection was closed") from error
        finally:
            sending.cancel()
            if self._writer is writer:
                self.disconnect()

    def disconnect(self) -> None:
        """Close the connection, if there is one."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._notify()

    async def wait_for_progress(self) -> None:
        """Wait until messages arrive, are handled or acknowledged, or the connection changes."""
        await self._progress.wait()

    async def _catch_up(self, writer: asyncio.StreamWriter) -> None:
        """Send what is behind, as fast as the connection takes it."""
        while self._writer is writer:
            try:
                await writer.drain()
            except OSError:
                return  # reading reports the end of the connection
            message = self.outbox.after(self._sent)
            if message is None:
                self._is_behind.clear()
                await self._is_behind.wait()
            else:
                self._write(writer, message)

    def _write(self, writer: asyncio.StreamWriter, message: bytes) -> None:
        self._sent += 1
        _write_frame(writer, self._sent, message)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while self.is_held:
            await self.wait_for_progress()
        kind, number, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        if kind == _ACKNOWLEDGEMENT and length == 0:
            self.outbox.acknowledge(number)
            self._notify()
            return
        if kind != _DATA or length > self._limit or number > self._received + 1:
            raise ChannelError(f"frame {kind!r} {number} of {length} bytes is not expected")
        message = bytearray(await reader.readexactly(length))
        if number == self._received + 1:
            self._received = number
            self._unhandled += length
            self._receive(message)
            self._notify()

    def _acknowledge_soon(self, length: int) -> None:
        self._unacknowledged += length
        if self._unacknowledged >= _ACKNOWLEDGE_AFTER_BYTES:
            self._acknowledge()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_ACKNOWLEDGE_AFTER_S, self._acknowledge)

    def _acknowledge(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._unacknowledged = 0
        if self._writer is not None:
            self._writer.write(_HEADER.pack(_ACKNOWLEDGEMENT, self.handled, 0))

    def _notify(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()


def _write_frame(writer: asyncio.StreamWriter, number: int, message: bytes) -> None:
    header = _HEADER.pack(_DATA, number, len(message))
    if len(message) <= _COPIED_BYTES:
        # In one piece: each piece would be a record of TLS and a message of a WebSocket.
        writer.write(header + message)
    else:
        writer.write(header)
        writer.write(message)
