"""Links of the head: a session that was without one for too long must not reach workers again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection, serve

from monarch_client.runner.gateway import links
from monarch_client.runner.gateway.links import LinkRequest, Links, SessionLateError
from monarch_client.runner.gateway.websocket import WebSocket


class Ends:
    """A worker that accepts connections, and a portal whose data links stay open."""

    def __init__(self) -> None:
        self.accepted = 0
        self.links: list[ServerConnection] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        await reader.read()
        writer.close()

    async def keep(self, link: ServerConnection) -> None:
        self.links.append(link)
        await link.wait_closed()


def with_links(use: Callable[[Links, Ends], Awaitable[None]]) -> None:
    """Run `use` with the links of an attempt of one worker."""

    async def run() -> None:
        ends = Ends()
        worker = await asyncio.start_server(ends.accept, "127.0.0.1", 0)
        async with worker, serve(ends.keep, "127.0.0.1", 0, compression=None) as portal:
            port = portal.sockets[0].getsockname()[1]

            async def dial(_token: str) -> WebSocket:
                stream = WebSocket(*await asyncio.open_connection("127.0.0.1", port))
                await stream.open("portal", "/gateway/v1/link", {})
                return stream

            async def admit(_rank: int) -> None:
                """Report nothing: these links lead to workers."""

            made = Links({"worker": [worker.sockets[0].getsockname()[:2]]}, None, dial, admit)
            try:
                await use(made, ends)
            finally:
                await made.close()

    asyncio.run(asyncio.wait_for(run(), 20))


def request(session: int, generation: int, kind: str = "worker") -> LinkRequest:
    return LinkRequest(session, 0, generation, 0, kind, "token")


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_a_session_that_had_no_link_for_too_long_reaches_no_worker_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def use(made: Links, ends: Ends) -> None:
        first = made.open(request(1, 1))
        await until(lambda: ends.accepted == 1)
        # A newer generation follows an open link at any time, as it does soon after its end.
        second = made.open(request(1, 2))
        await until(lambda: (ends.accepted, len(ends.links)) == (2, 2))
        await ends.links[-1].close()
        assert first is not None
        assert second is not None
        await asyncio.wait([first, second])
        monkeypatch.setattr(links, "MAX_AWAY_S", -1)
        late = made.open(request(1, 3))
        assert late is not None
        with pytest.raises(SessionLateError, match="Start the program again"):
            await late
        assert ends.accepted == 2
        # Another session has nothing to do with it.
        made.open(request(2, 1))
        await until(lambda: ends.accepted == 3)

    with_links(use)


def test_a_session_is_late_until_the_portal_has_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(made: Links, ends: Ends) -> None:
        made.open(request(1, 1))
        await until(lambda: ends.accepted == 1 and made._open[1] == 1)
        await made.close(1)
        monkeypatch.setattr(links, "MAX_AWAY_S", -1)
        late = made.open(request(1, 2))
        assert late is not None
        with pytest.raises(SessionLateError):
            await late
        await made.close(1)
        assert made.sessions() == {1}
        made.forget(1)
        assert made.sessions() == set()

    with_links(use)
