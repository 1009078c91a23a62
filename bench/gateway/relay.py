"""Bytes through the gateway's relay, and the same bytes through a bare relay of asyncio.

`make bench NAME=gateway.relay`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import django
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request

from bench.cpu_time import cpu_seconds
from bench.measure import Peer, figures, report, say

if TYPE_CHECKING:
    from jobs.gateway.listeners import Connection as GatewayConnection

MESSAGE = bytes(256 * 1024)
MEGABYTE = 1_000_000
_SIDE = "X-Side"


async def relay_of_gateway() -> None:
    """Join two connections as the gateway does, and print the port."""
    from jobs.gateway.links import Link, Side  # noqa: PLC0415 - after django.setup
    from jobs.gateway.listeners import Listeners  # noqa: PLC0415
    from jobs.gateway.rates import Meter  # noqa: PLC0415

    link = Link(1, 1, 1, Meter(), "bench")

    async def admit(connection: GatewayConnection, request: Request) -> None:
        side = Side(request.headers[_SIDE])
        connection.handle = lambda joined: link.serve(side, joined)

    listeners = Listeners(admit)
    await listeners.listen("127.0.0.1:0")
    print(listeners.ports[0], flush=True)
    await asyncio.Event().wait()


async def bare_relay(target: int) -> None:
    """Pass the bytes of TCP connections to a port, as read, and print the own port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(len(MESSAGE)):
            writer.write(data)
            await writer.drain()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, back = await asyncio.open_connection("127.0.0.1", target, limit=len(MESSAGE))
        await asyncio.gather(carry(reader, back), carry(far, writer))

    server = await asyncio.start_server(join, "127.0.0.1", 0, limit=len(MESSAGE))
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


@contextmanager
def relaying(*arguments: str) -> Iterator[tuple[int, int]]:
    """Run a relay in a process of its own; yield its pid and port."""
    argv = [sys.executable, "-m", "bench.gateway.relay", *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, int(process.stdout.readline())
        finally:
            process.terminate()


@asynccontextmanager
async def dialing(port: int, side: str = "") -> AsyncIterator[Connection]:
    """Open a WebSocket without compression and pings."""
    opening = connect(
        f"ws://127.0.0.1:{port}",
        additional_headers={_SIDE: side},
        compression=None,
        ping_interval=None,
        proxy=None,
        max_queue=2,
    )
    async with opening as connection:
        yield connection


async def through_gateway(messages: int) -> tuple[float, float]:
    """Return seconds, and processor seconds of the relay."""
    with relaying("--relay", "gateway") as (pid, port):
        async with dialing(port, "program") as near, dialing(port, "head") as far:
            return await timed(pid, near, far, messages)


async def through_bare(messages: int) -> tuple[float, float]:
    """Return the same for the bare relay, with a server as the far end."""
    arrived: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()

    async def receive(connection: ServerConnection) -> None:
        arrived.set_result(connection)
        await connection.wait_closed()

    opening = serve(receive, "127.0.0.1", 0, compression=None, ping_interval=None, max_queue=2)
    async with opening as server:
        target = server.sockets[0].getsockname()[1]
        with relaying("--relay", "bare", "--target", str(target)) as (pid, port):
            async with dialing(port) as near:
                return await timed(pid, near, await arrived, messages)


async def timed(pid: int, near: Connection, far: Connection, messages: int) -> tuple[float, float]:
    """Send so many messages from one end, and receive them at the other."""

    async def send() -> None:
        for _ in range(messages):
            await near.send(MESSAGE)

    cpu, began = cpu_seconds(pid), time.monotonic()
    sending = asyncio.create_task(send())
    for _ in range(messages):
        await far.recv()
    took = time.monotonic() - began
    await sending
    return took, cpu_seconds(pid) - cpu


def main() -> None:
    """Parse the command line, measure in turn, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--relay", choices=("gateway", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--target", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.relay == "gateway":
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")
        django.setup()
        asyncio.run(relay_of_gateway())
    elif options.relay == "bare":
        asyncio.run(bare_relay(options.target))
    else:
        _measure(options.megabytes, options.rounds)


def _measure(megabytes: int, rounds: int) -> None:
    messages = megabytes * MEGABYTE // len(MESSAGE)
    size = messages * len(MESSAGE) / MEGABYTE
    ours, bare = [], []
    with figures():
        for _ in range(rounds):
            ours.append(asyncio.run(through_gateway(messages)))
            bare.append(asyncio.run(through_bare(messages)))
            say(f"gateway {size / ours[-1][0]:.0f} MB/s, bare relay {size / bare[-1][0]:.0f} MB/s")
        _report(
            "gateway_relay_mb_per_s",
            "MB/s",
            [size / s for s, _ in ours],
            [size / s for s, _ in bare],
        )
        _report(
            "gateway_relay_cpu_ms_per_mb",
            "ms",
            [1000 * c / size for _, c in ours],
            [1000 * c / size for _, c in bare],
        )


def _report(figure: str, unit: str, ours: list[float], bare: list[float]) -> None:
    peer = Peer("bare asyncio relay", statistics.median(bare))
    report(figure, statistics.median(ours), unit, peer=peer, spread=(min(ours), max(ours)))


if __name__ == "__main__":
    main()
