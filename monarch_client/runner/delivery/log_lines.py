"""Encode frames as lines of a log that others write to as well.

`monarch_client.skypilot.log_frames` finds and decodes them.

A packet is a run of frames, zipped. It takes one line or several of at most 8 KiB, in ASCII:

    ~mp1 ATTEMPT PACKET RANK.SEQ DIGEST PART CHECK PAYLOAD~

PACKET counts from 1; RANK.SEQ is the packet's first frame; DIGEST names the packet's content, on
each of its lines. PART counts from 0 and ends in "+" where another part follows, in "." at the
last. CHECK covers the fields before it and the payload. PAYLOAD is base64: a tilde, a blank, a
control character or an end of line inside it was written by another program.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.frames import number_of

if TYPE_CHECKING:
    from typing import Sequence

MARK = b"~mp1 "
END = b"~"
LINE_BYTES = 8192
# What a packet unpacks to: a batch, or one frame of a line full of characters to be escaped.
PACKET_BYTES = 256 * 1024
MOST_UNPACKED_BYTES = 2 * 1024 * 1024
# With room for the longest header.
_PART_BYTES = LINE_BYTES - 192


def packet_lines(attempt_id: int, packet: int, frames: Sequence[bytes]) -> list[bytes]:
    """Return the lines of the log that carry `frames`, which are lines of NDJSON."""
    content = b"".join(frames)
    payload = base64.b64encode(zlib.compress(content, 6))
    first = "{}.{}".format(*number_of(frames[0]))
    head = f"{attempt_id} {packet} {first} {digest_of(content)}".encode()
    parts = [payload[at : at + _PART_BYTES] for at in range(0, len(payload), _PART_BYTES)]
    last = len(parts) - 1
    return [
        _line(b"%s %d%s" % (head, part, b"." if part == last else b"+"), data)
        for part, data in enumerate(parts)
    ]


def digest_of(content: bytes) -> str:
    """Return the name of a packet's content."""
    return hashlib.sha256(content).hexdigest()[:16]


def check_of(head: bytes, payload: bytes) -> bytes:
    """Return the check sum of one line."""
    return b"%08x" % zlib.crc32(payload, zlib.crc32(head))


def _line(head: bytes, payload: bytes) -> bytes:
    return MARK + head + b" " + check_of(head, payload) + b" " + payload + END + b"\n"
