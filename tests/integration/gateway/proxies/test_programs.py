"""The same programs pass on native Monarch and on proxies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.gateway.proxies.programs import run_programs
from tests.integration.gateway.proxies.programs.mesh_programs import PROGRAMS
from tests.monarch_workers import MonarchWorkers
from tests.proxy_driver import CHECKOUT, ProxyDriver, driver_environment, transport_of

pytestmark = [pytest.mark.monarch, pytest.mark.feature("S1.2"), pytest.mark.together]

RUNS: dict[str, dict[str, str]] = {}


def outcomes(kind: str, workers: MonarchWorkers, folder: Path) -> dict[str, str]:
    """Run all programs on a kind of mesh, once, and return the traceback of each."""
    if kind not in RUNS:
        if kind == "native":
            arguments = [",".join(workers.addresses), transport_of(workers)]
            RUNS[kind] = run(driver_environment(workers), kind, *arguments)
        else:
            driver = ProxyDriver(folder, workers)
            try:
                environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
                RUNS[kind] = run(environment, kind, driver.address)
                assert driver.process.wait(20) == 0, "the driver stays when its client has left"
            finally:
                driver.close()
    return RUNS[kind]


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
@pytest.mark.parametrize("kind", ["native", "proxy"])
def test_a_program_passes(kind: str, program: str, workers: MonarchWorkers, tmp_path: Path) -> None:
    failure = outcomes(kind, workers, tmp_path)[program]
    assert not failure, failure
