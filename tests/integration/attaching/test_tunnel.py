"""A tunnel through a real ssh: what an interruption costs, and what stays on the other side."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from monarch_client.attaching.tunnel import Tunnel
from monarch_client.skypilot.tunnel import open_ssh
from tests.monarch_workers import MonarchWorkers
from tests.ssh_server import SshServer
from tests.tunnel_driver import Driver
from tests.waiting import eventually


class Echo:
    """A server that returns what it gets. `peers` are its connections that are open."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = ("127.0.0.1", int(self._listener.getsockname()[1]))
        self.peers: set[socket.socket] = set()
        self.most = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """End the server and its connections."""
        for each in (self._listener, *self.peers):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                peer = self._listener.accept()[0]
                self.peers.add(peer)
                self.most = max(self.most, len(self.peers))
                threading.Thread(target=self._echo, args=(peer,), daemon=True).start()

    def _echo(self, peer: socket.socket) -> None:
        with suppress(OSError):
            while data := peer.recv(65536):
                peer.sendall(data)
        peer.close()
        self.peers.discard(peer)


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
def tunnel(tmp_path: Path, echo: Echo) -> Iterator[Tunnel]:
    """Provide a tunnel to the echo server."""
    server = SshServer(tmp_path / "ssh")
    tunnel = open_ssh(server.access(), echo.address, tmp_path)
    assert tunnel.wait(30) is None
    yield tunnel
    tunnel.close()
    server.close()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def dial(tunnel: Tunnel) -> socket.socket:
    """Connect, and get one byte through."""
    client = socket.create_connection(("127.0.0.1", tunnel.port), timeout=30)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    return client


def test_a_connection_that_hangs_on_the_other_side_ends_before_the_next_one_begins(
    tunnel: Tunnel, echo: Echo
) -> None:
    child = children(os.getpid())
    with dial(tunnel):
        program = next(pid for pid in child if "tunnel_process" in command_of(pid))
        (ssh,) = children(program)
        # A machine that has vanished: its ssh neither answers nor ends.
        os.kill(ssh, signal.SIGSTOP)
        try:
            os.kill(program, signal.SIGKILL)
            with dial(tunnel):
                assert len(echo.peers) == 1
            assert echo.most == 1
        finally:
            os.kill(ssh, signal.SIGKILL)


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_connections_wait_while_ssh_is_away(tunnel: Tunnel, echo: Echo) -> None:
    program = next(pid for pid in children(os.getpid()) if "tunnel_process" in command_of(pid))
    with dial(tunnel) as cut:
        os.kill(children(program)[0], signal.SIGKILL)
        assert cut.recv(1) == b""
    dial(tunnel).close()
    assert eventually(lambda: tunnel.look() is None)


def test_an_ended_worker_is_distinguished_from_a_lost_connection(
    tunnel: Tunnel, echo: Echo
) -> None:
    echo.close()
    with socket.create_connection(("127.0.0.1", tunnel.port), timeout=30) as client:
        assert client.recv(1) == b""
    assert eventually(lambda: isinstance(tunnel.look(), ConnectionRefusedError))


def test_nothing_remains_of_a_closed_tunnel(tunnel: Tunnel, echo: Echo, tmp_path: Path) -> None:
    with dial(tunnel) as client:
        tunnel.close()
        assert client.recv(1) == b""
    assert eventually(lambda: not echo.peers)
    assert eventually(lambda: not subprocess_of(tmp_path))


def subprocess_of(folder: Path) -> str:
    """Return the processes that name the tunnel's key."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return "".join(line for line in found.stdout.splitlines() if f"{folder}/ssh.key" in line)


def test_calls_outlive_a_short_cut_and_a_long_one_is_an_error(
    tmp_path: Path, workers: MonarchWorkers
) -> None:
    driver = Driver(tmp_path, workers, limit_s=6)
    try:
        driver.call()
        assert driver.answer() == "True"
        driver.call(1)
        with driver.network.cut():
            driver.call()
        assert [driver.answer(), driver.answer()] == ["True", "True"], driver.log
        before = workers.pids
        driver.call(1)
        with driver.network.cut():
            assert driver.answer() == "SessionLostError", driver.log
        assert "the limit is 6 s" in driver.log
        assert workers.pids == before
    finally:
        driver.close()
