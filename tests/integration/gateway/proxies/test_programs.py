"""Run the same programs on native Monarch, through the gateway, and on proxies."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway.proxies.programs import run_programs
from tests.integration.gateway.proxies.programs.mesh_programs import PROGRAMS
from tests.integration.gateway_programs.stand_in import StandIn
from tests.monarch_workers import PORT, MonarchWorkers
from tests.proxy_driver import CHECKOUT, ProxyDriver, driver_environment, transport_of

pytestmark = [
    pytest.mark.monarch,
    pytest.mark.feature("S1.2"),
    pytest.mark.feature("S1.3"),
    pytest.mark.together,
]

LAPTOP = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
RUNS: dict[str, dict[str, str]] = {}


def outcomes(kind: str, workers: MonarchWorkers, folder: Path) -> dict[str, str]:
    """Run all programs on a kind of mesh, once, and return the traceback of each."""
    if kind not in RUNS:
        run_kind = {"native": run_native, "tunnel": run_tunnel, "proxy": run_proxy}[kind]
        RUNS[kind] = run_kind(workers, folder)
    return RUNS[kind]


def run_native(workers: MonarchWorkers, _folder: Path) -> dict[str, str]:
    arguments = [",".join(workers.addresses), transport_of(workers)]
    return run(driver_environment(workers), "native", *arguments)


def run_tunnel(workers: MonarchWorkers, _folder: Path) -> dict[str, str]:
    gateway = StandIn(workers.authority, hello_of(workers), (workers.hosts[0], PORT))
    try:
        return run(LAPTOP, "tunnel", gateway.url, gateway.ticket)
    finally:
        gateway.close()


def run_proxy(workers: MonarchWorkers, folder: Path) -> dict[str, str]:
    driver = ProxyDriver(folder, workers)
    try:
        found = run(LAPTOP, "proxy", driver.address)
        assert driver.process.wait(20) == 0, "the driver stays when its client has left"
    finally:
        driver.close()
    return found


def hello_of(workers: MonarchWorkers) -> dict[str, Any]:
    """Return what the head of these workers sends."""
    named = zip(workers.hosts, workers.addresses, strict=True)
    return {
        "python": platform.python_version(),
        "torchmonarch": metadata.version("torchmonarch"),
        "workers": [
            {"rank": rank, "host": host, "address": address}
            for rank, (host, address) in enumerate(named)
        ],
        "meshes": {"trainers": [0, 1]},
    }


def run(environment: dict[str, str], *arguments: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, run_programs.__file__, *arguments],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = [line.removeprefix("program ") for line in done.stdout.splitlines()]
    return dict(json.loads(line) for line in lines if line.startswith("["))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", ["native", "tunnel", "proxy"])
def test_a_program_passes(kind: str, program: str, workers: MonarchWorkers, tmp_path: Path) -> None:
    failure = outcomes(kind, workers, tmp_path)[program]
    assert not failure, failure
