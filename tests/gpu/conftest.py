"""Provide a portal on a machine with NVIDIA GPUs: `pytest tests/gpu`. Never run by CI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local.gpus import gpus_of_machine
from tests.portal_process import PortalProcess

HERE = Path(__file__).parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collect nothing here unless the command line names this folder."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session")
def gpu() -> str:
    """Return the type of the first GPU, as a specification names it; skip without one."""
    present = gpus_of_machine()
    if not present:
        pytest.skip("this machine has no NVIDIA GPU that nvidia-smi lists")
    # "NVIDIA H100 80GB HBM3" is H100.
    return present[0].removeprefix("NVIDIA ").split()[0]


@pytest.fixture(scope="session")
def portal(gpu: str) -> Iterator[PortalProcess]:
    """Start a portal that samples its hosts every second."""
    process = PortalProcess(MPORTAL_METRICS_SECONDS="1")
    try:
        process.start()
        yield process
    finally:
        process.close()
