"""Monarch workers on addresses of this machine, as the runner starts them."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from monarch_client.runner import scripts
from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority, service_id
from monarch_client.runner.programs.environment import MONARCH_TUNING
from tests.fake_ca import make_authority
from tests.waiting import eventually

WORKER = Path(scripts.__file__).with_name("worker.py")
PORT = 26600
_networks = itertools.count(os.getpid() % 200)


class MonarchWorkers:
    """Workers of one attempt, each on an address of its own, and their mutual TLS.

    `addresses` is what `attach_to_workers` gets; `certificates` has those of a client. With
    `tls=False` the workers are as in Monarch's own examples: plain TCP, and no service ids.
    """

    def __init__(self, folder: Path, count: int = 1, *, tls: bool = True) -> None:
        network = f"127.{100 + next(_networks) % 100}.{os.getpid() % 250 + 1}"
        self.hosts = [f"{network}.{10 + rank}" for rank in range(count)]
        self.scheme = "tls" if tls else "tcp"
        self.certificates = folder / "client"
        self._folder = folder
        self.authority = make_authority()
        self._authority = Authority(*self.authority.values())
        if tls:
            self._mint(self.certificates, ["127.0.0.1", "localhost"])
        self.processes = [self._start(rank) for rank in range(count)]
        for host in self.hosts:
            assert eventually(lambda host=host: is_open(host)), f"no worker at {host}"

    @property
    def addresses(self) -> list[str]:
        """The workers as `attach_to_workers` names them, in rank order."""
        if self.scheme == "tcp":
            return [f"tcp://{host}:{PORT}" for host in self.hosts]
        return [
            f"service<{service_id(1, rank)}>@tls://{host}:{PORT}"
            for rank, host in enumerate(self.hosts)
        ]

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return [process.pid for process in self.processes if process.poll() is None]

    def folder_of(self, rank: int) -> Path:
        """Return the directory of a worker's certificates."""
        return self._folder / f"worker-{rank}"

    def end(self, rank: int) -> None:
        """Kill one with all its processes."""
        os.killpg(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].wait()

    def close(self) -> None:
        """Kill all of them. A repetition does nothing."""
        for rank, process in enumerate(self.processes):
            if process.poll() is None:
                self.end(rank)

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **MONARCH_TUNING, "SKYPILOT_NODE_RANK": str(rank)}
        if self.scheme == "tls":
            folder = self.folder_of(rank)
            self._mint(folder, [self.hosts[rank], "127.0.0.1"])
            environment |= tls_environment(folder)
        with (self._folder / f"worker-{rank}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, WORKER, self.addresses[rank], self._folder / f"facts-{rank}"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _mint(self, folder: Path, names: list[str]) -> None:
        mint_leaf(self._authority, names, folder, sys.executable)


def tls_environment(folder: Path) -> Mapping[str, str]:
    """Return the variables with which Monarch finds the certificates in `folder`."""
    files = {"CERT": "leaf.crt", "KEY": "leaf.key", "CA": "ca.crt"}
    return {f"HYPERACTOR_TLS_{name}": str(folder / file) for name, file in files.items()}


def is_open(host: str, port: int = PORT) -> bool:
    """Whether a port accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False
