"""SkyPilotJob in users' programs over a stand-in for SkyPilot's server, with real workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess
from tests.skypilot_clients import BIN, Client, environment_of
from tests.waiting import eventually

RunClient = Callable[..., Client]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubProcess]:
    # Where nodes find a Python that has torchmonarch.
    monkeypatch.setenv("PATH", str(BIN), prepend=os.pathsep)
    stub = StubProcess(tmp_path / "stub")
    # A minute of idleness, here and in the programs.
    stub.plan(minute_s=0.2)
    yield stub
    stub.close()


@pytest.fixture
def run(stub: StubProcess, tmp_path: Path) -> Iterator[RunClient]:
    """Start a program; `more` is for its environment."""
    folder, clients = tmp_path / "project", []
    folder.mkdir()

    def start(program: str, **more: str) -> Client:
        environment = environment_of(tmp_path / "home", stub.url, **more)
        clients.append(Client(folder, program, environment))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def remains(stub: StubProcess) -> list[str]:
    """List the clusters and node processes that exist."""
    pids = processes.marked(processes.NODE_MARK, stub.state)
    return [*stub.witness.problems(), *stub.cloud.names(), *map(str, pids)]


def nothing_remains(stub: StubProcess) -> bool:
    """Whether all that was launched goes away, if not at once."""
    return eventually(lambda: not remains(stub), timeout_s=90)
