"""Workers with a gateway in front of them, and programs of users that drive them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority, service_id
from monarch_client.runner.programs.environment import MONARCH_TUNING
from tests.fake_ca import make_authority
from tests.integration.gateway_programs.programs import Program
from tests.integration.gateway_programs.stand_in import StandIn
from tests.runner_harness import free_port
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[3]
WORKER = CHECKOUT / "monarch_client" / "runner" / "scripts" / "worker.py"


@dataclass
class Workers:
    """Workers of one attempt on loopback addresses, with their authority."""

    authority: dict[str, str]
    addresses: list[tuple[str, int]]
    processes: list[subprocess.Popen[bytes]]

    @property
    def hello(self) -> dict[str, object]:
        """The message of the attempt's head."""
        workers = [
            {
                "rank": rank,
                "host": f"node-{rank}",
                "address": f"service<{service_id(17, rank)}>@tls://{host}:{port}",
            }
            for rank, (host, port) in enumerate(self.addresses)
        ]
        return {
            "attempt": 17,
            "python": platform.python_version(),
            "torchmonarch": "0.7.0",
            "workers": workers,
            "meshes": {"trainers": [0, 1], "left-over": [1]},
        }


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    """Start two real workers with mutual TLS."""
    authority = make_authority()
    found = Workers(authority, [], [])
    for rank in range(2):
        host, port = f"127.0.0.{rank + 2}", free_port()
        found.addresses.append((host, port))
        found.processes.append(_start(authority, rank, host, port, tmp_path / f"worker-{rank}"))
    for rank in range(2):
        assert eventually((tmp_path / f"worker-{rank}" / "facts").exists)
    yield found
    for process in found.processes:
        os.killpg(process.pid, 9)
        process.wait()


def _start(
    authority: dict[str, str], rank: int, host: str, port: int, folder: Path
) -> subprocess.Popen[bytes]:
    folder.mkdir()
    keys = Authority(authority["ca_cert"], authority["ca_key"])
    mint_leaf(keys, [host, "127.0.0.1", "localhost"], folder, sys.executable)
    address = f"service<{service_id(17, rank)}>@tls://{host}:{port}"
    files = {"CERT": "leaf.crt", "KEY": "leaf.key", "CA": "ca.crt"}
    tls = {f"HYPERACTOR_TLS_{name}": str(folder / file) for name, file in files.items()}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(WORKER), address, str(folder / "facts")],
            cwd=folder,
            env={**os.environ, **MONARCH_TUNING, **tls, "RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@pytest.fixture
def gateway(workers: Workers) -> Iterator[StandIn]:
    """Return a gateway in front of the workers."""
    stand_in = StandIn(workers.authority, workers.hello, workers.addresses[0])
    yield stand_in
    stand_in.close()


StartProgram = Callable[..., Program]


@pytest.fixture
def start(gateway: StandIn, tmp_path: Path) -> Iterator[StartProgram]:
    """Start a program that is connected through the gateway as `connection` and `meshes`."""
    programs: list[Program] = []

    def begin(text: str, **options: object) -> Program:
        programs.append(Program(tmp_path, text, gateway.url, gateway.ticket, options))
        return programs[-1]

    yield begin
    for program in programs:
        program.close()
