"""`mportal ssh` with closed or odd standard streams, and forwarded clients that leave abruptly."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from monarch_client.gateway.forward import Forward
from monarch_client.gateway.forwarded_ports import ForwardedPorts
from monarch_client.runner.node_streams.messages import (
    DATA,
    END,
    ERRORS,
    EXIT,
    MAX_BYTES,
    pack,
    receive_blocking,
)
from tests.each_case import check_each

CHECKOUT = Path(__file__).resolve().parents[3]
END_S = 30
PROGRAM = """
import sys
from monarch_client.cli.standard_streams import open_closed
open_closed()
from monarch_client.cli.terminal import complain
from monarch_client.gateway.remote_shell import RemoteShell, ShellLostError
class Session:
    node_socket = sys.argv[1]
try:
    code = RemoteShell(Session(), 0, "cat", has_terminal=False).run()
except ShellLostError as error:
    complain(str(error))
    code = 255
sys.exit(code)
"""
Serve = Callable[[socket.socket, BinaryIO], None]


class Node:
    """A node that opens every stream, which `serve` then has."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "node"
        self.serve: Serve = run_cat
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                json.loads(file.readline())
                connection.sendall(b'{"ok": true}\n')
                with suppress(OSError):  # the program has left
                    self.serve(connection, file)


def run_cat(connection: socket.socket, file: BinaryIO) -> None:
    """Write to both outputs, and exit with 3 at the end of the input."""
    connection.sendall(pack(DATA, b"out") + pack(ERRORS, b"err"))
    received = b""
    while (message := receive_blocking(file)) is not None and message[0] != END:
        received += message[1]
    for at in range(0, len(received), MAX_BYTES):
        connection.sendall(pack(DATA, received[at : at + MAX_BYTES]))
    connection.sendall(pack(EXIT, b'{"code": 3}'))
    receive_blocking(file)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    started = Node(tmp_path)
    yield started
    started.close()


def test_odd_standard_streams_neither_hang_nor_break_a_shell(node: Node, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "file").write_text("")

    def check(redirections: str, code: int, words: str) -> None:
        command = f"exec {sys.executable} program.py node {redirections}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert words in done.stdout + done.stderr

    check_each(
        [
            ("<&-", 3, "out"),
            ("0>file", 3, "out"),
            (">&-", 3, "err"),
            ("2>&-", 3, "out"),
            ("<&- >&- 2>&-", 3, ""),
            ("2< file", 255, ""),
            ("> /dev/full", 255, "No space left"),
            ("1< file", 255, "cannot be written"),
        ],
        check,
    )


def test_standard_streams_that_never_block_lose_nothing(node: Node, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    near, far = socket.socketpair()
    for each in (near, far):
        each.setblocking(False)
    started = subprocess.Popen(
        [sys.executable, "program.py", "node"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=far.fileno(),
        stdout=far.fileno(),
        stderr=subprocess.PIPE,
    )
    far.close()
    near.settimeout(END_S)
    assert near.recv(3) == b"out"
    data = bytes(range(256)) * 8000
    sender = threading.Thread(target=lambda: (near.sendall(data), near.shutdown(socket.SHUT_WR)))
    sender.start()
    received = b""
    while content := near.recv(65536):
        received += content
    sender.join(END_S)
    _, errors = started.communicate(timeout=END_S)
    assert (started.returncode, received == data, errors) == (3, True, b"err")
    near.close()


def flood(connection: socket.socket, _file: BinaryIO) -> None:
    while True:
        connection.sendall(pack(DATA, bytes(65536)))


def wait_for_end(_connection: socket.socket, file: BinaryIO) -> None:
    while receive_blocking(file) is not None:
        pass


@pytest.mark.parametrize(
    ("serve", "has_sent_end"), [(wait_for_end, False), (flood, False), (flood, True)]
)
def test_the_stream_of_a_forwarded_client_ends_with_its_reset(
    node: Node, serve: Serve, has_sent_end: bool
) -> None:
    began, over = threading.Event(), threading.Event()

    def serve_and_note(connection: socket.socket, file: BinaryIO) -> None:
        began.set()
        try:
            serve(connection, file)
        finally:
            over.set()

    node.serve = serve_and_note
    ports = ForwardedPorts([Forward.parse("0:localhost:80")], pytest.fail)
    ports.serve(node.path, 0)
    (_, host, port) = ports.addresses[0]
    client = socket.create_connection((host, port), timeout=END_S)
    client.sendall(b"request")
    assert began.wait(END_S)
    if has_sent_end:
        client.shutdown(socket.SHUT_WR)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert over.wait(END_S)
    ports.close()


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_the_command_line_runs_without_standard_streams(redirections: str) -> None:
    program = "from monarch_client.cli.main import main; main()"
    command = f"exec {sys.executable} -c '{program}' --version {redirections}"
    done = subprocess.run(["bash", "-c", command], cwd=CHECKOUT, timeout=END_S, check=False)
    assert done.returncode == 0
