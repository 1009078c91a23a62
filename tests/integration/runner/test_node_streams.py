"""Streams of a job's nodes: the runners serve them to laptops, also in a plain job."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from monarch_client.runner.node_streams.messages import DATA, END, EXIT, pack, receive_blocking
from tests.fake_ca import make_authority
from tests.node_laptop import SESSION, Laptop, command_line, stream_pid
from tests.runner_harness import RunnerRig
from tests.stand_in_gateway import StandInGateway
from tests.unit.runner.test_bundle import pythons

MakeRig = Callable[..., RunnerRig]


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


def test_a_certificate_opens_the_nodes_own_port_only_while_its_session_is_open(
    make_laptop: Callable[..., tuple[RunnerRig, Laptop]], gateway: StandInGateway
) -> None:
    rig, laptop = make_laptop(2)
    for rank in (0, 1):
        with laptop.stream(rank, "forward", host=7):
            pass
        node = rig.config["nodes"][rank]["address"], rig.config["node_port"]
        with laptop.direct(*node, "code") as (answer, _):
            assert "sessions of the kind ssh" in answer["error"]
        with laptop.direct(*node, "shell") as (answer, file):
            assert answer == {"ok": True}
            gateway.order("close", session=SESSION)
            last = None
            while (message := receive_blocking(file)) is not None:
                last = message
            assert last in {None, (EXIT, b'{"why": "The session or its job has ended."}')}
        with laptop.direct(*node, "shell") as (answer, _):
            assert answer["error"] == f"Session {SESSION} is not open."


def test_a_job_that_no_program_wants_serves_no_streams(make_rig: MakeRig) -> None:
    rig = make_rig(1, run="sleep 100", tls=make_authority())
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.of_kind("worker"))
    assert not [pid for pid in rig.processes(0) if b"stream_process" in command_line(pid)]
    assert not (rig.root() / "state" / "tls").exists()
