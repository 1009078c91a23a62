"""`make_rig`: an attempt with real runners; `make_nodes`: machines as SkyPilot leaves them. Nothing
of either is left when the test ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runner_harness import RunnerRig
from tests.skypilot_nodes import SkyPilotNodes


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
