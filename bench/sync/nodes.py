"""Nodes on loopback, each a process with mutual TLS, and a laptop that sends code to the first."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.own_portal import CHECKOUT
from monarch_client.gateway.certificates import make_request
from monarch_client.runner.base.certificates import mint_leaf, sign_request
from monarch_client.runner.base.config import Authority
from monarch_client.runner.base.tls import client_context
from monarch_client.runner.code.manifest import BLOCK_BYTES, File
from monarch_client.sync.scanning import Scanner, Snapshot
from monarch_client.sync.sending import CodeSender, Sent
from monarch_client.sync.stat_cache import StatCache
from tests.fake_ca import make_authority

PORT = 22224
NETWORK = f"127.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250 + 1}"


def addresses(count: int) -> list[str]:
    """Return the addresses of so many nodes."""
    return [f"{NETWORK}.{10 + rank}" for rank in range(count)]


@contextmanager
def running_nodes(folder: Path, count: int) -> Iterator[Path]:
    """Start so many nodes below a folder; yield the folder with a laptop's certificate."""
    authority = Authority(**make_authority())
    laptop = folder / "laptop-tls"
    laptop.mkdir()
    signed = sign_request(authority, make_request(laptop), "laptop 1", 3600, sys.executable)
    (laptop / "leaf.crt").write_text(signed.leaf)
    (laptop / "ca.crt").write_text(signed.ca)
    processes = []
    try:
        for rank, address in enumerate(addresses(count)):
            certificates = folder / f"tls-{rank}"
            mint_leaf(authority, [address], certificates, sys.executable)
            names, root = ",".join(addresses(count)), folder / f"rank-{rank}"
            command = [sys.executable, "-m", "bench.sync.node", str(rank), names, str(PORT)]
            processes.append(
                subprocess.Popen(
                    [*command, str(root), str(certificates)],
                    cwd=CHECKOUT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield laptop
    finally:
        for process in processes:
            process.communicate()


class Laptop:
    """A laptop with a folder of code, and an open stream to the head."""

    def __init__(self, folder: Path, certificates: Path) -> None:
        # Of blocks and manifests that are new with the last sync.
        self.changed_bytes = 0
        self.scans: list[float] = []
        self._known: set[str] = set()
        self._scanner = Scanner(folder, StatCache())
        plain = socket.create_connection((addresses(1)[0], PORT))
        self._connection = client_context(certificates).wrap_socket(
            plain, server_hostname=addresses(1)[0]
        )
        self._connection.sendall(json.dumps({"open": "code"}).encode() + b"\n")
        file = self._connection.makefile("rb")
        assert json.loads(file.readline()) == {"ok": True}
        self._sender = CodeSender(file, self._connection.sendall, lambda _progress: None)

    def sync(self) -> Sent:
        """Send what has changed, until all nodes have switched."""
        began_at = time.perf_counter()
        snapshot = self._scanner.scan()
        self.scans.append(time.perf_counter() - began_at)
        sent = self._sender.send(snapshot)
        self._count(snapshot)
        return sent

    def close(self) -> None:
        """Close the stream."""
        self._connection.close()

    def _count(self, snapshot: Snapshot) -> None:
        sizes = {digest: len(content) for digest, content in snapshot.manifests.items()}
        for file in snapshot.files.values():
            if isinstance(file, File):
                # All files of the measurements have one block, or whole ones only.
                sizes.update(dict.fromkeys(file.blocks, min(file.size, BLOCK_BYTES)))
        self.changed_bytes = sum(sizes[digest] for digest in sizes.keys() - self._known)
        self._known = set(sizes)
