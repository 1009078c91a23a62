"""The reports of a tunnel's child about a worker that accepts connections and does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from monarch_client.attaching import tunnel_process
from monarch_client.attaching.tunnel_process import Links


@asynccontextmanager
async def served(serve) -> AsyncIterator[int]:
    """Serve connections on a free port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_a_worker_that_does_not_answer_is_reported_until_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[str] = []
    monkeypatch.setattr(tunnel_process, "ANSWER_S", 0.05)
    monkeypatch.setattr(tunnel_process, "report", lambda state, _detail="": reports.append(state))

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(5) == b"hello"
        while "silent" not in reports:
            await asyncio.sleep(0.01)
        writer.write(b"late")
        writer.close()

    async def scenario() -> None:
        links = Links()
        async with served(answer_late) as worker, served(links.serve) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            links.open(worker)
            assert await reader.read(5) == b"late"
            assert await reader.read(5) == b""
            writer.close()
            await writer.wait_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert reports == ["up", "silent", "up"]
