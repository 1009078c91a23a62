"""Certificates of a node, of a laptop and of a stranger; and the ends of streams between them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from monarch_client.gateway.certificates import make_request
from monarch_client.runner.base.certificates import mint_leaf, sign_request
from monarch_client.runner.base.config import Authority
from monarch_client.runner.base.tls import client_context
from monarch_client.runner.node_streams.opening import read_line
from tests.fake_ca import make_authority

Ends = tuple[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter]


class Certificates:
    """The folders of a node's certificate, of a laptop's, and of one of another authority."""

    def __init__(self, folder: Path) -> None:
        self.node, self.laptop, self.other = (folder / n for n in ("node", "laptop", "other"))
        authority = Authority(**make_authority())
        mint_leaf(authority, ["127.0.0.1"], self.node, "none")
        mint_leaf(Authority(**make_authority()), ["127.0.0.1"], self.other, "none")
        self.laptop.mkdir()
        signed = sign_request(authority, make_request(self.laptop), "laptop 7", 3600, "none")
        (self.laptop / "leaf.crt").write_text(signed.leaf)
        (self.laptop / "ca.crt").write_text(signed.ca)


@contextlib.asynccontextmanager
async def opened(folder: Path, port: int, line: bytes) -> AsyncIterator[Ends]:
    """Open a stream with the certificate in `folder`; yield the answer and both directions."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(folder))
    try:
        writer.write(line)
        yield await read_line(reader), reader, writer
    finally:
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def request(service: str, **fields: Any) -> bytes:
    """Return the line that opens a stream."""
    return json.dumps({"open": service, **fields}).encode() + b"\n"


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine to its end, within 20 seconds."""
    asyncio.run(asyncio.wait_for(main(), 20))
