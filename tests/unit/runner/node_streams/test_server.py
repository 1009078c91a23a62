"""Node streams over real TLS: who may open which service, and what a forwarded port carries."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.node_streams.dialing import Dialer
from monarch_client.runner.node_streams.forward import serve_forward
from monarch_client.runner.node_streams.messages import DATA, END, EXIT, TAKEN, pack, receive
from monarch_client.runner.node_streams.open_sessions import OpenSessions
from monarch_client.runner.node_streams.opening import CALLERS, NodeStream, RefusedError
from monarch_client.runner.node_streams.server import NodeServer
from tests.runner_harness import free_port
from tests.unit.runner.node_streams.certificates import Certificates, opened, request, run


async def accept(stream: NodeStream) -> None:
    await stream.accept(seen=stream.request)


@contextlib.asynccontextmanager
async def node(certificates: Certificates, kind: str = "ssh") -> AsyncIterator[int]:
    """Serve all services on a port; those without a handler of their own accept everything.

    `kind` is that of the laptop's session; "": it is not open.
    """
    services = {**dict.fromkeys(CALLERS, accept), "forward": serve_forward}
    server = NodeServer(services, OpenSessions({7: kind} if kind else {}))
    port = free_port()
    await server.listen("127.0.0.1", port, certificates.node)
    try:
        yield port
    finally:
        await server.close()


async def answer_to(folder: Path, port: int, line: bytes) -> dict[str, Any]:
    async with opened(folder, port, line) as (answer, _, _):
        return answer


def test_each_service_is_open_to_its_callers_alone(certificates: Certificates) -> None:
    async def main() -> None:
        for folder, kind, mine in (
            (certificates.laptop, "ssh", {"shell", "forward"}),
            (certificates.laptop, "attach", {"code"}),
            (certificates.laptop, "sync", {"code"}),
            (certificates.laptop, "node", set()),
            (certificates.laptop, "", set()),
            (certificates.node, "ssh", {"blocks", "switch", "sessions"}),
        ):
            async with node(certificates, kind) as port:
                answers = {
                    service: await answer_to(folder, port, request(service)) for service in CALLERS
                }
                refused = {s for s, a in answers.items() if "not open" in str(a.get("error"))}
                assert refused == CALLERS.keys() - mine, kind
        async with node(certificates) as port:
            with pytest.raises((ssl.SSLError, OSError, EOFError)):
                await answer_to(certificates.other, port, request("shell"))

    run(main)


def test_lines_that_open_nothing_are_answered_with_a_sentence(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            for line in (b"[]\n", b"{\n", b'{"open": []}\n', b'{"open": "teleport"}\n', b"\n"):
                answer = await answer_to(certificates.laptop, port, line)
                assert str(answer["error"]).endswith("."), line
            long = request("shell", more="x" * 70_000)
            answer = await answer_to(certificates.laptop, port, long)
            assert "first line" in answer["error"]

    run(main)


def test_a_node_dials_another_one_and_gets_its_reason(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            dialer = Dialer(["127.0.0.1"], port, certificates.node)
            stream = await dialer.dial(0, "blocks", names=["a"])
            assert stream.answer["seen"] == {"open": "blocks", "names": ["a"]}
            stream.writer.close()
            await stream.writer.wait_closed()
            for rank, service, why in ((0, "shell", "not open"), (1, "blocks", "no rank 1")):
                with pytest.raises(RefusedError, match=why):
                    await dialer.dial(rank, service)

    run(main)


@pytest.fixture
def echo() -> Iterator[Callable[[], Awaitable[int]]]:
    """Return a function that serves a port, which sends all back when its caller has ended."""
    servers: list[asyncio.AbstractServer] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready ")
        writer.write(await reader.read())
        writer.close()

    async def start() -> int:
        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        return int(servers[-1].sockets[0].getsockname()[1])

    yield start
    for server in servers:
        server.close()


def test_a_forwarded_port_keeps_half_closed_connections(
    certificates: Certificates, echo: Callable[[], Awaitable[int]]
) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            to = {"host": "127.0.0.1", "port": await echo()}
            line = request("forward", **to)
            async with opened(certificates.laptop, port, line) as (answer, reader, writer):
                assert answer == {"ok": True}
                assert await receive(reader) == (DATA, b"ready ")
                data = bytes(range(256)) * 4000
                for at in range(0, len(data), 200_000):
                    writer.write(pack(DATA, data[at : at + 200_000]))
                writer.write(pack(END))
                received, kinds = b"", []
                while EXIT not in kinds:
                    kind, content = await receive(reader)
                    received += content if kind == DATA else b""
                    kinds += [kind] if kind not in {DATA, TAKEN} else []
                assert (received == data, kinds) == (True, [END, EXIT])

    run(main)


def test_a_port_that_nothing_listens_on_is_reported(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            for host, number in (("127.0.0.1", free_port()), ("no.such.host.invalid", 80)):
                line = request("forward", host=host, port=number)
                answer = await answer_to(certificates.laptop, port, line)
                assert f"cannot connect to {host}:{number}" in answer["error"]
            answer = await answer_to(certificates.laptop, port, request("forward", host=7))
            assert answer["error"] == "A forward needs a host and a port."

    run(main)
