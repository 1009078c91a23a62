"""The protocol between runners: JSON lines over TLS; a message may carry encoded frames.

Peer to hub: first {"hello": {...}}, then {"number", "frames", "state",
"samples"}. Hub to peer: an answer
{"number", "have", "goal", "grace_s", "stacks", "streams"} to each, and the last four whenever they
change. "stacks" are the stack dumps requested of this rank; "streams": serve this node's streams.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary.messages import MALFORMED, object_in

if TYPE_CHECKING:
    import asyncio
    from typing import Any, Sequence


class WireError(Exception):
    """A violation of the protocol, or a closed connection."""


class Message(NamedTuple):
    """One message with the frames it carries."""

    fields: dict[str, Any]
    lines: list[bytes]


def write(
    writer: asyncio.StreamWriter, fields: dict[str, Any], lines: Sequence[bytes] = ()
) -> None:
    """Write a message without waiting until the connection takes it."""
    head = json.dumps({**fields, "frames": len(lines)}).encode("ascii") + b"\n"
    writer.write(head + b"".join(lines))


async def send(
    writer: asyncio.StreamWriter, fields: dict[str, Any], lines: Sequence[bytes] = ()
) -> None:
    """Write a message and wait until the connection has taken it."""
    write(writer, fields, lines)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> Message:
    """Read a message. WireError if the connection has closed."""
    try:
        head = object_in(await _line(reader))
        count = int(head.get("frames", 0))
    except (OSError, *MALFORMED) as error:
        raise WireError(repr(error)) from error
    return Message(head, [await _line(reader) for _ in range(count)])


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise WireError("the connection has closed")
    return line
