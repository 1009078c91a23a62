"""A WebSocket client (RFC 6455) of the standard library, over a connection that is open already."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Mapping

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NORMAL, GOING_AWAY, FAILED = 1000, 1001, 1011
MAX_MESSAGE_BYTES = 1024 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FINAL, _MASKED = 0x80, 0x80
_SWITCHING_PROTOCOLS = 101
_SHORT, _LONG = 126, 127
_CLOSE_TIMEOUT_S = 1.0


class WebSocketError(OSError):
    """A connection that ended, or a server that breaks the protocol."""


class RefusedError(WebSocketError):
    """A server that answered the opening request with another status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the portal answered with status {status}")
        self.status = status


class ClosedError(WebSocketError):
    """A connection that the server closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the portal closed the stream: {code} {reason}".rstrip())
        self.code = code


class Message(NamedTuple):
    """A whole message."""

    is_text: bool
    content: bytes


def masked(content: bytes, key: bytes) -> bytes:
    """Return `content` XORed with the repeated key of four bytes."""
    size = len(content)
    pattern = (key * (size // 4 + 1))[:size]
    number = int.from_bytes(content, "little") ^ int.from_bytes(pattern, "little")
    return number.to_bytes(size, "little")


def frame_of(opcode: int, content: bytes, key: bytes) -> bytes:
    """Return a whole message, or a control frame, as a client sends it."""
    size = len(content)
    if size < _SHORT:
        head = struct.pack("!BB", _FINAL | opcode, _MASKED | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FINAL | opcode, _MASKED | _SHORT, size)
    else:
        head = struct.pack("!BBQ", _FINAL | opcode, _MASKED | _LONG, size)
    return b"".join((head, key, masked(content, key)))


class WebSocket:
    """An open WebSocket. Answers pings by itself; one task receives, any task sends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._heard_at = time.monotonic()
        self._is_closing = False

    @property
    def silent_s(self) -> float:
        """The seconds since anything was received."""
        return time.monotonic() - self._heard_at

    async def open(self, host: str, path: str, headers: Mapping[str, str]) -> None:
        """Make the opening handshake. RefusedError: the server answered otherwise."""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {
            "Host": host,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            **headers,
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await self._writer.drain()
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise WebSocketError(f"the portal gave no answer: {error}") from error
        _check_answer(head[:_MAX_HEAD_BYTES].decode("latin-1"), key)
        self._heard_at = time.monotonic()

    async def send_text(self, text: str) -> None:
        """Send a text message."""
        await self._send(TEXT, text.encode())

    async def send_binary(self, content: bytes) -> None:
        """Send a binary message, and wait while the other side does not read."""
        await self._send(BINARY, content)

    async def ping(self) -> None:
        """Send a ping; its answer resets `silent_s`."""
        # Never waits: where the other side does not read, `silent_s` grows.
        self._writer.write(frame_of(PING, b"", os.urandom(4)))

    async def receive(self) -> Message:
        """Return the next message. ClosedError, or another WebSocketError: there is none."""
        opcode, size = 0, 0
        parts: list[bytes] = []
        while True:
            is_final, kind, content = await self._receive_frame()
            if kind >= CLOSE:
                self._obey(kind, content)
                continue
            if (kind == CONTINUATION) != bool(parts):
                raise WebSocketError("a message has begun within another one")
            opcode = kind or opcode
            parts.append(content)
            size += len(content)
            if size > MAX_MESSAGE_BYTES:
                raise WebSocketError("a message is too large")
            if is_final:
                return Message(opcode == TEXT, parts[0] if len(parts) == 1 else b"".join(parts))

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Send a close frame, wait a moment for it to leave, and end the connection."""
        if not self._is_closing and not self._writer.transport.is_closing():
            self._is_closing = True
            content = struct.pack("!H", code) + reason.encode()[:120]
            self._writer.write(frame_of(CLOSE, content, os.urandom(4)))
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(self._writer.drain(), _CLOSE_TIMEOUT_S)
            # What is still unsent leaves in the background; `abort` would drop it.
            self._writer.close()
        else:
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self._is_closing = True
        self._writer.transport.abort()

    async def _send(self, opcode: int, content: bytes) -> None:
        if self._is_closing:
            raise WebSocketError("the stream is closed")
        self._writer.write(frame_of(opcode, content, os.urandom(4)))
        await self._writer.drain()

    async def _receive_frame(self) -> tuple[bool, int, bytes]:
        try:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size == _SHORT:
                (size,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif size == _LONG:
                (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
            if second & _MASKED or first & 0x70 or size > MAX_MESSAGE_BYTES:
                raise WebSocketError("the portal breaks the protocol of WebSockets")
            content = await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise WebSocketError("the connection ended") from error
        self._heard_at = time.monotonic()
        return bool(first & _FINAL), first & 0x0F, content

    def _obey(self, kind: int, content: bytes) -> None:
        if kind == PING:
            self._writer.write(frame_of(PONG, content, os.urandom(4)))
        elif kind == CLOSE:
            if not self._is_closing:
                self._is_closing = True
                self._writer.write(frame_of(CLOSE, content[:2], os.urandom(4)))
            code = struct.unpack("!H", content[:2])[0] if len(content) > 1 else NORMAL
            raise ClosedError(code, content[2:].decode("utf-8", "replace"))
        elif kind != PONG:
            raise WebSocketError(f"the portal sent a frame of the unknown kind {kind}")


def _check_answer(head: str, key: str) -> None:
    first, *lines = head.split("\r\n")
    words = first.split(" ", 2)
    try:
        status = int(words[1])
    except (IndexError, ValueError):
        raise WebSocketError("the answer is not HTTP") from None
    if status != _SWITCHING_PROTOCOLS:
        raise RefusedError(status)
    fields = {}
    for line in lines:
        name, _, text = line.partition(":")
        fields[name.lower()] = text.strip()
    digest = hashlib.sha1(key.encode() + _ACCEPT_SALT).digest()  # noqa: S324 - the protocol's own
    if fields.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise WebSocketError("the answer accepts no WebSocket")
