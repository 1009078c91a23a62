"""`make_rig`: an attempt with real runners; `make_nodes`: machines as SkyPilot leaves them;
`make_laptop`: an attempt with a laptop. Nothing of them is left when the test ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_ca import make_authority
from tests.node_laptop import Laptop
from tests.runner_harness import RunnerRig
from tests.skypilot_nodes import SkyPilotNodes
from tests.stand_in_gateway import StandInGateway


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., RunnerRig]]:
    rigs: list[RunnerRig] = []

    def make(nodes: int = 1, **settings: Any) -> RunnerRig:
        rigs.append(RunnerRig(tmp_path, nodes, **settings))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def make_nodes(tmp_path: Path) -> Iterator[Callable[..., SkyPilotNodes]]:
    clusters: list[SkyPilotNodes] = []

    def make(nodes: int = 1, **options: Any) -> SkyPilotNodes:
        clusters.append(SkyPilotNodes(tmp_path, nodes, **options))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def gateway() -> Iterator[StandInGateway]:
    made = StandInGateway("secret-token")
    yield made
    made.close()


@pytest.fixture
def make_laptop(
    make_rig: Callable[..., RunnerRig], gateway: StandInGateway, tmp_path: Path
) -> Callable[..., tuple[RunnerRig, Laptop]]:
    """Start a job, which the portal then asks to connect, and return it with a laptop."""

    def make(
        nodes: int, interpreter: str = sys.executable, **settings: Any
    ) -> tuple[RunnerRig, Laptop]:
        rig = make_rig(nodes, **{"run": "sleep 100", "tls": make_authority(), **settings})
        rig.ingest.gateway_port = gateway.port
        rig.ingest.wants_gateway = True
        rig.start(python=interpreter)
        gateway.wait_for_message("hello")
        return rig, Laptop(gateway, tmp_path / "laptop")

    return make
