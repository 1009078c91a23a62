"""`make_rig`: an attempt with real runners, of which nothing is left when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runner_harness import RunnerRig


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., RunnerRig]]:
    rigs: list[RunnerRig] = []

    def make(nodes: int = 1, **settings: Any) -> RunnerRig:
        rigs.append(RunnerRig(tmp_path, nodes, **settings))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()
