"""Node streams over real TLS: who may open which service, and what a forwarded port carries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.gateway.certificates import make_request
from monarch_client.runner.base.certificates import mint_leaf, sign_request
from monarch_client.runner.base.config import Authority
from monarch_client.runner.base.tls import client_context
from monarch_client.runner.node_streams.dialing import Dialer
from monarch_client.runner.node_streams.forward import serve_forward
from monarch_client.runner.node_streams.messages import DATA, END, EXIT, pack, receive
from monarch_client.runner.node_streams.opening import CALLERS, NodeStream, RefusedError, read_line
from monarch_client.runner.node_streams.server import NodeServer
from tests.fake_ca import make_authority
from tests.runner_harness import free_port

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


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


async def accept(stream: NodeStream) -> None:
    await stream.accept(seen=stream.request)


@contextlib.asynccontextmanager
async def node(certificates: Certificates) -> AsyncIterator[int]:
    """Serve all services on a port; those without a handler of their own accept everything."""
    server = NodeServer({**dict.fromkeys(CALLERS, accept), "forward": serve_forward})
    port = free_port()
    await server.listen("127.0.0.1", port, certificates.node)
    try:
        yield port
    finally:
        await server.close()


@contextlib.asynccontextmanager
async def opened(folder: Path, port: int, line: bytes) -> AsyncIterator[Ends]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(folder))
    try:
        writer.write(line)
        yield await read_line(reader), reader, writer
    finally:
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def answer_to(folder: Path, port: int, line: bytes) -> dict[str, Any]:
    async with opened(folder, port, line) as (answer, _, _):
        return answer


def request(service: str, **fields: Any) -> bytes:
    return json.dumps({"open": service, **fields}).encode() + b"\n"


def run(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 20))


def test_each_service_is_open_to_its_callers_alone(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            for folder, mine in (
                (certificates.laptop, {"shell", "forward", "code"}),
                (certificates.node, {"blocks", "switch"}),
            ):
                answers = {
                    service: await answer_to(folder, port, request(service)) for service in CALLERS
                }
                refused = {s for s, a in answers.items() if "not open to this" in str(a)}
                assert refused == CALLERS.keys() - mine
            with pytest.raises((ssl.SSLError, OSError, EOFError)):
                await answer_to(certificates.other, port, request("shell"))

    run(main)


def test_lines_that_open_nothing_are_answered_with_a_sentence(certificates: Certificates) -> None:
    async def main() -> None:
        async with node(certificates) as port:
            for line in (b"[]\n", b"{\n", b'{"open": []}\n', b'{"open": "teleport"}\n', b"\n"):
                answer = await answer_to(certificates.laptop, port, line)
                assert str(answer["error"]).endswith("."), line
            long = request("code", more="x" * 70_000)
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
                received = b""
                while (message := await receive(reader))[0] == DATA:
                    received += message[1]
                assert (received == data, message[0]) == (True, END)
                assert (await receive(reader))[0] == EXIT

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
