"""The relay in front of the mesh admin: its port is closed, and only nodes of the attempt pass."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monarch_client.runner.base.tls import client_context
from monarch_client.runner.mesh.admin import MeshAdmin
from tests.unit.runner.node_streams.certificates import Certificates

# An admin that answers all requests of everybody alike, in an event loop as Monarch does.
PROGRAM = """
import asyncio, json, os, ssl, sys
from monarch_client.runner.scripts import serve_mesh_admin

ANSWER = b'HTTP/1.1 200 OK\\r\\nContent-Length: 20\\r\\n\\r\\n{"identity": "root"}'

async def answer(reader, writer):
    while await reader.readuntil(b"\\r\\n\\r\\n"):
        writer.write(ANSWER)

async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["HYPERACTOR_TLS_CERT"], os.environ["HYPERACTOR_TLS_KEY"])
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    sys.stdin.readline()
    try:
        url = await asyncio.to_thread(serve_mesh_admin._serve_behind_relay, port)
        print(json.dumps(url), flush=True)
    except ConnectionError as error:
        print(json.dumps(str(error)), flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
Admin = tuple[int, Callable[[], str]]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def admin(certificates: Certificates) -> Iterator[Admin]:
    """Serve an admin; yield its port, and what guards it and returns the address or the refusal."""
    files = {"CERT": "leaf.crt", "KEY": "leaf.key", "CA": "ca.crt"}
    own = {f"HYPERACTOR_TLS_{name}": str(certificates.node / file) for name, file in files.items()}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **own},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    given, printed = process.stdin, process.stdout

    def guard() -> str:
        given.write("\n")
        given.flush()
        return str(json.loads(printed.readline()))

    with process:
        yield int(printed.readline()), guard
        process.kill()


def asked(url: str, folder: Path, reference: str = "root") -> int:
    admin = MeshAdmin(url, client_context(folder))
    try:
        return admin.ask(reference).status
    finally:
        admin.close()


def test_only_nodes_of_the_attempt_reach_the_admin(
    admin: Admin, certificates: Certificates
) -> None:
    port, guard = admin
    url = guard()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
    assert asked(url, certificates.node) == 200
    assert asked(url, certificates.node, "odd \x01 \xe9 ref/erence") == 200
    assert asked(url, certificates.laptop) == 0
    assert asked(url, certificates.other) == 0


def test_an_admin_to_which_a_stranger_connected_first_is_not_used(admin: Admin) -> None:
    port, guard = admin
    with socket.create_connection(("127.0.0.1", port), 5):
        assert "another process connected" in guard()
