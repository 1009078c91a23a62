"""Messages of the services `shell` and `forward`: a letter, a length, and that many bytes.

TLS through a link has no half-close: END is one. In both services DATA flows until END.

| letter | from | content |
|---|---|---|
| DATA | both | input or output |
| END | both | nothing: no DATA follows from here |
| ERRORS | shell | output on standard error |
| TAKEN | node | how many bytes of the caller's DATA were taken: a decimal number |
| SIZE | caller | rows and columns of the terminal: JSON, two numbers |
| SIGNAL | caller | the name of a signal, such as INT |
| EXIT | node | the last message: of a shell JSON, {"code": number} or {"why": sentence} |

The caller sends at most WINDOW_BYTES beyond what was taken. It closes the stream once it has read
EXIT: a close before that may overtake bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.messages import MALFORMED, object_in

if TYPE_CHECKING:
    import asyncio
    from typing import Any, BinaryIO

DATA, END, TAKEN, EXIT = b"d", b"e", b"t", b"x"
ERRORS, SIZE, SIGNAL = b"r", b"w", b"s"
_HEAD = struct.Struct(">cI")
# Of one message's content.
MAX_BYTES = 256 * 1024
WINDOW_BYTES = 4 * 1024 * 1024
_MOST_DIGITS = 20


class MessageError(OSError):
    """A message that is too large or malformed: the other end does not speak this protocol."""


def pack(kind: bytes, content: bytes = b"") -> bytes:
    """Return the bytes of a message."""
    return _HEAD.pack(kind, len(content)) + content


def taken_bytes(content: bytes) -> int:
    """Return the number of a TAKEN message. MessageError: it is none, or above the window."""
    taken = int(content) if content.isdigit() and len(content) <= _MOST_DIGITS else -1
    if not 0 <= taken <= WINDOW_BYTES:
        raise MessageError(f"{content[:20]!r} are no bytes that were taken")
    return taken


def end_of_shell(content: bytes) -> dict[str, Any]:
    """Return the code or the reason of an EXIT of a shell. MessageError: it has neither."""
    try:
        end = object_in(content)
        return {"code": int(end["code"])} if "code" in end else {"why": str(end["why"])}
    except MALFORMED as error:
        raise MessageError(f"{content[:100]!r} is no end of a shell") from error


async def receive(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read a message. IncompleteReadError: the stream has ended. MessageError."""
    kind, size = _unpacked(await reader.readexactly(_HEAD.size))
    return kind, await reader.readexactly(size)


def receive_blocking(file: BinaryIO) -> tuple[bytes, bytes] | None:
    """Read a message from a buffered file; None at its end. MessageError."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, size = _unpacked(head)
    content = file.read(size)
    return (kind, content) if len(content) == size else None


def unpacked(buffer: bytearray) -> tuple[bytes, bytes] | None:
    """Remove the first message of a buffer and return it; None if it is not whole. MessageError."""
    if len(buffer) < _HEAD.size:
        return None
    kind, size = _unpacked(bytes(buffer[: _HEAD.size]))
    end = _HEAD.size + size
    if len(buffer) < end:
        return None
    content = bytes(buffer[_HEAD.size : end])
    del buffer[:end]
    return kind, content


def _unpacked(head: bytes) -> tuple[bytes, int]:
    kind, size = _HEAD.unpack(head)
    if size > MAX_BYTES:
        raise MessageError(f"a message of {size} bytes")
    return kind, size
