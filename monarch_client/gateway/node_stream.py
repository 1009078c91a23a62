"""Open a stream to a service of a node, through the link of a session.

The services and their bytes are those of `monarch_client.runner.node_streams`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from monarch_client.attaching.errors import AttachError
from monarch_client.gateway.linked_session import LinkedSession
from monarch_client.runner.vocabulary.messages import MalformedError, object_in


class NodeStreamError(AttachError):
    """A stream that is not opened; the message has the node's reason."""

    code = "node_stream_refused"


@dataclass(frozen=True)
class NodeStream:
    """An open stream: the node's answer, a buffered file to read, and the socket to send to."""

    answer: dict[str, Any]
    file: BinaryIO
    socket: socket.socket

    def close(self) -> None:
        """Close it, which ends what the service does for it."""
        self.file.close()
        self.socket.close()


def open_node_stream(
    session: LinkedSession[Any], rank: int, service: str, **fields: Any
) -> NodeStream:
    """Open a stream to a service of `rank`. NodeStreamError: the node or portal refuses it."""
    connection = socket.socket(socket.AF_UNIX)
    file = connection.makefile("rb")
    try:
        connection.connect(str(session.node_socket))
        connection.sendall(_request(rank, service, fields))
        return NodeStream(answer_in(file.readline()), file, connection)
    except BaseException:
        file.close()
        connection.close()
        raise


async def open_node_stream_async(
    node_socket: Path, rank: int, service: str, **fields: Any
) -> tuple[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream to a service of `rank`, by a session's `node_socket`. NodeStreamError."""
    reader, writer = await asyncio.open_unix_connection(str(node_socket))
    try:
        writer.write(_request(rank, service, fields))
        return answer_in(await reader.readline()), reader, writer
    except BaseException:
        writer.transport.abort()
        raise


def _request(rank: int, service: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"rank": rank, "open": service, **fields}).encode() + b"\n"


def answer_in(line: bytes) -> dict[str, Any]:
    """Return the fields of a node's answer. NodeStreamError: it refuses, or left without one."""
    try:
        answer = object_in(line) if line.endswith(b"\n") else {}
    except MalformedError as error:
        raise NodeStreamError("The node's answer is malformed.") from error
    if answer.get("ok") is not True:
        raise NodeStreamError(str(answer.get("error") or "The connection to the portal was lost."))
    return answer
