"""A laptop at a stand-in gateway that opens streams to the nodes of a real runner's job."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from monarch_client.runner.base.tls import client_context
from tests.gateway_way import Way, certified
from tests.runner_harness import RunnerRig, wait_until
from tests.stand_in_gateway import StandInGateway

SESSION = 9


class Laptop:
    """A laptop with a certificate, which opens streams to nodes."""

    def __init__(self, gateway: StandInGateway, folder: Path) -> None:
        self._gateway = gateway
        self._context = client_context(certified(gateway, folder, SESSION))
        self._links = 0

    @contextmanager
    def direct(
        self, host: str, port: int, service: str
    ) -> Iterator[tuple[dict[str, Any], BinaryIO]]:
        """Open a stream at the node's own port, without a link."""
        plain = socket.create_connection((host, port), timeout=20)
        with (
            self._context.wrap_socket(plain, server_hostname=host) as connection,
            connection.makefile("rb") as file,
        ):
            connection.sendall(json.dumps({"open": service}).encode() + b"\n")
            yield json.loads(file.readline()), file

    @contextmanager
    def stream(
        self, rank: int, service: str, **fields: Any
    ) -> Iterator[tuple[dict[str, Any], ssl.SSLSocket, BinaryIO]]:
        self._links += 1
        way = Way(
            self._gateway,
            SESSION,
            kind="node",
            rank=rank,
            link=self._links,
            session_kind="sync" if service == "code" else "ssh",
        )
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
