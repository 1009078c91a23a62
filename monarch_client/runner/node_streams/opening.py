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
    from typing import Any, Callable, Mapping

MAX_LINE_BYTES = 64 * 1024
# What a reader buffers before it pauses its sender.
CHUNK_BYTES = 256 * 1024
# The callers: nodes, and laptops by the kinds of their sessions.
NODE, ATTACH, SSH, SYNC = "node", "attach", "ssh", "sync"
_NODE_NAME, _LAPTOP_NAME = "mportal node", "laptop"
# Who may open which service. A service that is not here is closed to all.
CALLERS = {
    "shell": {SSH},
    "forward": {SSH},
    "code": {ATTACH, SYNC},
    "blocks": {NODE},
    "switch": {NODE},
    "sessions": {NODE},
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


def checked_service(
    certificate: Mapping[str, Any] | None,
    request: Mapping[str, Any],
    kind_of: Callable[[int], str],
) -> tuple[str, int | None]:
    """Return the service of a request, and the caller's session, None of a node.

    `kind_of` returns the kind of an open session, "" for any other. RefusedError: there is no such
    service, or it is not for this caller.
    """
    service = request.get("open")
    callers = CALLERS.get(service) if isinstance(service, str) else None
    if callers is None:
        raise RefusedError(f"This node has no service called {str(service)[:_SHOWN_CHARS]!r}.")
    is_node, session = caller_of(certificate)
    kind = NODE if is_node else kind_of(session) if session is not None else ""
    if session is not None and not kind:
        raise RefusedError(f"Session {session} is not open.")
    if kind not in callers or (kind == NODE) != is_node:
        whom = "sessions of the kind " + kind if session is not None else "this certificate"
        raise RefusedError(f"The service {service!r} is not open to {whom}.")
    return str(service), session


def caller_of(certificate: Mapping[str, Any] | None) -> tuple[bool, int | None]:
    """Return whether a certificate, as ssl parses it, is a node's; and the session of a laptop's.

    Of any other: False and None.
    """
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    if names == [_NODE_NAME]:
        return True, None
    kind, _, session = names[0].partition(" ") if len(names) == 1 else ("", "", "")
    is_laptop = kind == _LAPTOP_NAME and session.isascii() and session.isdecimal()
    return False, int(session) if is_laptop else None
