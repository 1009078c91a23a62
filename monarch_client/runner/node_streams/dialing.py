"""Open a stream to another node of the attempt, with this node's certificate."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base import tls
from monarch_client.runner.node_streams.opening import (
    CHUNK_BYTES,
    RefusedError,
    read_line,
    send_line,
)

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_TIMEOUT_S = 10.0


class OpenStream(NamedTuple):
    """An open stream: the fields of the node's answer, and the bytes of the service."""

    answer: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Dialer:
    """A maker of streams to the nodes of an attempt, whose addresses are in rank order."""

    def __init__(self, addresses: list[str], port: int, certificates: Path) -> None:
        self._addresses = addresses
        self._port = port
        self._certificates = certificates

    async def dial(self, rank: int, service: str, **fields: Any) -> OpenStream:
        """Open a stream to a service of `rank`. RefusedError, or another OSError: it is not."""
        if not 0 <= rank < len(self._addresses):
            raise RefusedError(f"There is no rank {rank}.")
        try:
            return await asyncio.wait_for(self._dial(rank, service, fields), _TIMEOUT_S)
        except asyncio.TimeoutError:
            raise OSError(f"rank {rank} gave no answer in {_TIMEOUT_S:g} s") from None

    async def _dial(self, rank: int, service: str, fields: dict[str, Any]) -> OpenStream:
        reader, writer = await asyncio.open_connection(
            self._addresses[rank],
            self._port,
            ssl=tls.client_context(self._certificates),
            limit=CHUNK_BYTES,
        )
        try:
            await send_line(writer, {"open": service, **fields})
            answer = await read_line(reader)
            if "error" in answer:
                raise RefusedError(str(answer["error"]))
        except BaseException:
            writer.transport.abort()
            raise
        return OpenStream(answer, reader, writer)
