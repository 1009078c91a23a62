"""A channel of messages that survives its connections: each message arrives once, in order.

Both sides number their messages and keep them until the other side acknowledges them. After a
reconnect each side sends what the other has not received. A frame is one byte for its kind, two
numbers and a payload:

    H  hello: JSON, the first frame of each side
    D  data: the number of the message, and the message
    A  acknowledgement: the number of the last message received
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from typing import TYPE_CHECKING

from .codec import MESSAGE_LIMIT
from .outbox import Outbox

if TYPE_CHECKING:
    from typing import Any, Callable

VERSION = 1
_HEADER = struct.Struct("!cQQ")
_HELLO, _DATA, _ACKNOWLEDGEMENT = b"H", b"D", b"A"
_HELLO_LIMIT = 1 << 20
# Acknowledgements wait this long for more messages, or for this many bytes.
_ACKNOWLEDGE_AFTER_S = 0.02
_ACKNOWLEDGE_AFTER_BYTES = 1 << 20
_COPIED_BYTES = 1 << 16


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
    except ValueError as error:
        raise ChannelError("the other side's hello is malformed") from error
    if not isinstance(hello, dict) or hello.get("version") != VERSION:
        raise ChannelError(f"the other side does not speak version {VERSION} of the protocol")
    return hello


class Channel:
    """One end of a channel, in an event loop. `receive` gets each message once."""

    def __init__(self, receive: Callable[[bytearray], None], limit: int = MESSAGE_LIMIT) -> None:
        self.outbox = Outbox()
        self.received = 0
        self._receive = receive
        self._limit = limit
        self._writer: asyncio.StreamWriter | None = None
        self._unacknowledged = 0
        self._timer: asyncio.TimerHandle | None = None
        self._progress = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._writer is not None

    def send(self, message: bytes, substitute: bytes | None = None) -> None:
        """Send a message now, or at the next connection.

        `substitute` replaces it if it expires before it was acknowledged.
        """
        number = self.outbox.add(message, time.monotonic(), substitute)
        if self._writer is not None:
            _write_frame(self._writer, number, message)

    async def run(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: int
    ) -> None:
        """Serve a connection until it ends. `received`: the last number the other side has.

        ConnectionError: it was cut, or does not follow the protocol.
        """
        self.disconnect()
        self.outbox.acknowledge(received)
        self._writer = writer
        self._notify()
        try:
            for number, message in list(self.outbox):
                _write_frame(writer, number, message)
            while self._writer is writer:
                await self._read(reader)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the connection was closed") from error
        finally:
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
        """Wait for an acknowledgement, or for the connection to change."""
        await self._progress.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        kind, number, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        if kind == _ACKNOWLEDGEMENT and length == 0:
            self.outbox.acknowledge(number)
            self._notify()
            return
        if kind != _DATA or length > self._limit or number > self.received + 1:
            raise ChannelError(f"frame {kind!r} {number} of {length} bytes is not expected")
        message = bytearray(await reader.readexactly(length))
        if number == self.received + 1:
            self.received = number
            self._receive(message)
        self._acknowledge_soon(length)

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
            self._writer.write(_HEADER.pack(_ACKNOWLEDGEMENT, self.received, 0))

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
