"""Sessions of laptops at a node: open as long as the head node reports them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from monarch_client.runner.gateway import admissions
from monarch_client.runner.gateway.admissions import Admissions
from monarch_client.runner.node_streams import open_sessions
from monarch_client.runner.node_streams.dialing import Dialer, OpenStream
from monarch_client.runner.node_streams.open_sessions import OpenSessions
from monarch_client.runner.node_streams.opening import NodeStream, RefusedError, read_line
from monarch_client.runner.node_streams.server import NodeServer
from tests.runner_harness import free_port
from tests.unit.runner.node_streams.certificates import Certificates, Ends, opened, request, run

LAPTOP, OTHER = 7, 8


class Node:
    """A node, and the head that reports to it."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self.port = free_port()
        self.reports: list[OpenStream] = []
        self._sockets: list[socket.socket] = []
        self._dialer = Dialer(["127.0.0.1"], self.port, certificates.node)
        self.head = Admissions(self._dial)

    async def start(self) -> None:
        sessions = OpenSessions()
        services = {"sessions": sessions.serve, "shell": _serve}
        self.server = NodeServer(services, sessions)
        await self.server.listen("127.0.0.1", self.port, self._certificates.node)

    async def close(self) -> None:
        self.head.close()
        for each in self._sockets:
            each.close()
        await self.server.close()

    def shell(self) -> contextlib.AbstractAsyncContextManager[Ends]:
        return opened(self._certificates.laptop, self.port, request("shell"))

    async def refusal(self) -> str:
        async with self.shell() as (answer, _, _):
            return str(answer.get("error", ""))

    async def _dial(self, rank: int) -> OpenStream:
        if rank:
            return await self._hanging()
        self.reports.append(await self._dialer.dial(rank, "sessions"))
        return self.reports[-1]

    async def _hanging(self) -> OpenStream:
        """Return a stream to a node that has answered its first report, and hangs then."""
        here, there = socket.socketpair()
        there.sendall(b'{"number": 1}\n')
        self._sockets.append(there)
        return OpenStream({}, *await asyncio.open_connection(sock=here))


async def _serve(stream: NodeStream) -> None:
    await stream.accept()
    await stream.reader.read()


@contextlib.asynccontextmanager
async def node(certificates: Certificates) -> AsyncIterator[Node]:
    made = Node(certificates)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def test_a_certificate_opens_nothing_before_its_session_and_after_it(
    certificates: Certificates,
) -> None:
    async def main() -> None:
        async with node(certificates) as at:
            assert await at.refusal() == f"Session {LAPTOP} is not open."
            at.head.open(OTHER, "ssh")
            await at.head.admit(0)
            assert await at.refusal() == f"Session {LAPTOP} is not open."
            at.head.open(LAPTOP, "ssh")
            await at.head.admit(0)
            async with at.shell() as (answer, reader, _):
                assert answer == {"ok": True}
                at.head.end(LAPTOP)
                assert await reader.read() == b"", "what is open ends with its session"
            assert await at.refusal() == f"Session {LAPTOP} is not open."
            assert len(at.reports) == 1

    run(main)


def test_without_reports_of_the_head_no_session_is_open(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(open_sessions, "SILENCE_S", 1.0)
        async with node(certificates) as at:
            for is_cut in (True, False):
                at.head.open(LAPTOP, "ssh")
                await at.head.admit(0)
                async with at.shell() as (_, reader, _):
                    if is_cut:
                        at.reports[-1].writer.transport.abort()
                    assert await reader.read() == b""
                assert "not open" in await at.refusal()

    run(main)


def test_reports_keep_sessions_open_and_reach_a_new_process_of_the_node(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(open_sessions, "SILENCE_S", 0.5)
        monkeypatch.setattr(admissions, "BEAT_S", 0.05)
        async with node(certificates) as at:
            at.head.open(LAPTOP, "ssh")
            await at.head.admit(0)
            async with at.shell() as (_, reader, _):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(reader.read(), 1.5)
            await at.server.close()
            await at.start()
            await at.head.admit(0)
            assert not await at.refusal()

    run(main)


def test_a_node_that_hangs_delays_no_report_to_another(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admissions.BEAT_S + admissions._ANSWER_S < 0.7 * open_sessions.SILENCE_S

    async def main() -> None:
        monkeypatch.setattr(open_sessions, "SILENCE_S", 0.5)
        monkeypatch.setattr(admissions, "BEAT_S", 0.05)
        async with node(certificates) as at:
            at.head.open(LAPTOP, "ssh")
            await asyncio.gather(at.head.admit(0), at.head.admit(1))
            async with at.shell() as (_, reader, _):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(reader.read(), 1.5)
                at.head.end(LAPTOP)
                assert await asyncio.wait_for(reader.read(), 5) == b""

    run(main)


def test_a_malformed_report_closes_all_sessions(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as at:
            at.head.open(LAPTOP, "ssh")
            await at.head.admit(0)
            dialer = Dialer(["127.0.0.1"], at.port, certificates.node)
            for line in (b"[]", b'{"sessions": [7]}', b'{"sessions": {"x": "ssh"}}', b"{}"):
                stream = await dialer.dial(0, "sessions")
                stream.writer.write(line + b"\n")
                with contextlib.suppress(RefusedError):
                    assert "number" not in await read_line(stream.reader)
                stream.writer.transport.abort()
                assert "not open" in await at.refusal()

    run(main)


def test_a_stream_of_reports_that_breaks_at_its_begin_closes_all_sessions() -> None:
    class Broken(NodeStream):
        async def accept(self, **_fields: object) -> None:
            raise ConnectionResetError

    async def main() -> None:
        sessions = OpenSessions({LAPTOP: "ssh"})
        reader = asyncio.StreamReader()
        with pytest.raises(ConnectionResetError):
            await sessions.serve(Broken({}, reader, None))
        assert not sessions.kind_of(LAPTOP)

    run(main)
