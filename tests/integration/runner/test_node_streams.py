"""Streams of a job's nodes: the runners serve them to laptops, also in a plain job."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from monarch_client.runner.base.tls import client_context
from monarch_client.runner.node_streams.messages import DATA, END, EXIT, pack, receive_blocking
from tests.fake_ca import make_authority
from tests.gateway_way import Way, certified
from tests.runner_harness import RunnerRig, wait_until
from tests.stand_in_gateway import StandInGateway
from tests.unit.runner.test_bundle import pythons

MakeRig = Callable[..., RunnerRig]
SESSION = 9


@pytest.fixture
def gateway() -> Iterator[StandInGateway]:
    made = StandInGateway("secret-token")
    yield made
    made.close()


class Laptop:
    """A laptop with a certificate, which opens streams to nodes."""

    def __init__(self, gateway: StandInGateway, folder: Path) -> None:
        self._gateway = gateway
        self._context = client_context(certified(gateway, folder, SESSION))
        self._links = 0

    @contextmanager
    def stream(
        self, rank: int, service: str, **fields: Any
    ) -> Iterator[tuple[dict[str, Any], ssl.SSLSocket, BinaryIO]]:
        self._links += 1
        way = Way(self._gateway, SESSION, kind="node", rank=rank, link=self._links)
        try:
            plain = socket.create_connection(("127.0.0.1", way.port), timeout=20)
            with (
                self._context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
                connection.makefile("rb") as file,
            ):
                connection.sendall(json.dumps({"open": service, **fields}).encode() + b"\n")
                yield json.loads(file.readline()), connection, file
        finally:
            way.close()


@pytest.fixture
def make_laptop(
    make_rig: MakeRig, gateway: StandInGateway, tmp_path: Path
) -> Callable[..., tuple[RunnerRig, Laptop]]:
    """Start a job, which the portal then asks to connect, and return it with a laptop."""

    def make(
        nodes: int, interpreter: str = sys.executable, **settings: Any
    ) -> tuple[RunnerRig, Laptop]:
        rig = make_rig(nodes, **{"run": "sleep 100", "tls": make_authority(), **settings})
        rig.ingest.gateway_port = gateway.port
        rig.ingest.wants_gateway = True
        rig.start(python=interpreter)
        gateway.wait_for_message("hello")
        return rig, Laptop(gateway, tmp_path / "laptop")

    return make


@contextmanager
def greeter() -> Iterator[int]:
    """Listen on a port that sends a word over its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(20)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def stream_pid(rig: RunnerRig, rank: int) -> int:
    def found() -> list[int]:
        return [pid for pid in rig.processes(rank) if b"stream_process" in command_line(pid)]

    wait_until(found)
    return found()[0]


@pytest.mark.parametrize("interpreter", sorted(pythons()))
def test_every_node_of_a_plain_job_forwards_ports_once_the_portal_wants_it(
    make_laptop: Callable[..., tuple[RunnerRig, Laptop]],
    gateway: StandInGateway,
    interpreter: str,
) -> None:
    rig, laptop = make_laptop(2, interpreter)
    hello = gateway.wait_for_message("hello")
    assert (hello["workers"], [each["rank"] for each in hello["nodes"]]) == ([], [0, 1])
    for rank in (1, 0):
        with greeter() as port:
            to = {"host": "127.0.0.1", "port": port}
            with laptop.stream(rank, "forward", **to) as (answer, connection, file):
                assert answer == {"ok": True}
                assert receive_blocking(file) == (DATA, b"hello")
                assert receive_blocking(file) == (END, b"")
                connection.sendall(pack(END))
                assert receive_blocking(file) == (EXIT, b"")
    assert [rig.log(rank) for rank in rig.runners] == ["", ""]


def test_a_killed_process_of_streams_is_started_again_and_the_job_goes_on(
    make_laptop: Callable[..., tuple[RunnerRig, Laptop]],
) -> None:
    rig, laptop = make_laptop(1)
    os.kill(stream_pid(rig, 0), signal.SIGKILL)
    with laptop.stream(0, "forward", host=7) as (answer, _, _):
        assert answer["error"] == "A forward needs a host and a port."
    rig.ingest.wait_for(lambda: any("shells" in text for text in rig.ingest.texts("portal")))
    assert not rig.ingest.of_kind("end")
    rig.stop_rank(0)
    rig.wait()
    assert rig.processes() == []


def test_a_job_that_no_program_wants_serves_no_streams(make_rig: MakeRig) -> None:
    rig = make_rig(1, run="sleep 100", tls=make_authority())
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.of_kind("worker"))
    assert not [pid for pid in rig.processes(0) if b"stream_process" in command_line(pid)]
    assert not (rig.root() / "state" / "tls").exists()
