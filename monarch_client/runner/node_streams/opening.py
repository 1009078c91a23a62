"""The opening of a node stream: one line of JSON each way, after TLS.

The caller sends {"open": SERVICE, ...}, the node answers {"ok": true, ...} or {"error": REASON}.
After that the bytes belong to the service.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.messages import pack
from monarch_client.runner.vocabulary.messages import MalformedError, object_in

if TYPE_CHECKING:
    from typing import Any, Mapping

MAX_LINE_BYTES = 64 * 1024
# What a reader buffers before it pauses its sender.
CHUNK_BYTES = 256 * 1024
# The callers, by the name in their certificates: a laptop's session, or another node.
LAPTOP, NODE = "laptop", "node"
_NODE_NAME = "mportal node"
# Who may open which service. A service that is not here is closed to all.
CALLERS = {
    "shell": LAPTOP,
    "forward": LAPTOP,
    "code": LAPTOP,
    "blocks": NODE,
    "switch": NODE,
}
_SHOWN_CHARS = 200


class RefusedError(OSError):
    """A node stream that is not opened; the message is a sentence for people."""


class NodeStream:
    """A stream that a caller has requested. Its service calls `accept`, or raises RefusedError.

    `request` has the fields of the caller's line.
    """

    def __init__(
        self,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer

    async def accept(self, **fields: Any) -> None:
        """Answer that the stream is open, with what the service adds."""
        await send_line(self.writer, {"ok": True, **fields})

    async def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send a message (`messages`) and wait until the connection has taken it."""
        self.writer.write(pack(kind, content))
        await self.writer.drain()


async def read_line(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Read a line of the opening. RefusedError: it is none, or the stream has ended."""
    try:
        line = await reader.readuntil(b"\n")
        return object_in(line if len(line) <= MAX_LINE_BYTES else b"")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, MalformedError) as error:
        raise RefusedError("The first line of a node stream must be a JSON object.") from error


async def send_line(writer: asyncio.StreamWriter, fields: Mapping[str, Any]) -> None:
    """Send a line of the opening."""
    writer.write(json.dumps(fields).encode("ascii") + b"\n")
    await writer.drain()


def checked_service(certificate: Mapping[str, Any] | None, request: Mapping[str, Any]) -> str:
    """Return the service of a request, if the caller with this certificate may open it.

    RefusedError: there is no such service, or it is not for this caller.
    """
    service = request.get("open")
    caller = CALLERS.get(service) if isinstance(service, str) else None
    if caller is None:
        raise RefusedError(f"This node has no service called {str(service)[:_SHOWN_CHARS]!r}.")
    if caller != caller_of(certificate):
        raise RefusedError(f"The service {service!r} is not open to this certificate.")
    return str(service)


def caller_of(certificate: Mapping[str, Any] | None) -> str:
    """Return LAPTOP or NODE, by a certificate as ssl parses it; "" for any other."""
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    if names == [_NODE_NAME]:
        return NODE
    kind, _, session = names[0].partition(" ") if len(names) == 1 else ("", "", "")
    return LAPTOP if kind == LAPTOP and session.isdecimal() else ""
