"""Workers for all tests of a file, and a driver for each session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.monarch_workers import MonarchWorkers
from tests.proxy_driver import ProxyDriver

StartDriver = Callable[..., ProxyDriver]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonarchWorkers]:
    """Provide two workers with mutual TLS."""
    workers = MonarchWorkers(tmp_path_factory.mktemp("workers"), 2)
    yield workers
    workers.close()


@pytest.fixture
def start_driver(workers: MonarchWorkers, tmp_path: Path) -> Iterator[StartDriver]:
    """Start a driver; it ends with the test."""
    drivers: list[ProxyDriver] = []

    def start(*options: str, listen: str = "") -> ProxyDriver:
        folder = tmp_path / f"driver-{len(drivers)}"
        drivers.append(ProxyDriver(folder, workers, *options, listen=listen))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()
