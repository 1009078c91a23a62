"""The contract of all backends, kept by SkyPilot's on a real cluster.

By default the part that needs a real server most; with FULL=1 in the environment all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from tests.cluster.contract_rig import ClusterRig
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer
from tests.integration.backends import test_contract as contract

DEFAULT = ("test_a_forgotten_launch_is_adopted_by_its_name",)
WHOLE = [name for name in vars(contract) if name.startswith("test_")]
for _name in WHOLE if os.environ.get("FULL") == "1" else DEFAULT:
    globals()[_name] = pytest.mark.timeout(900)(vars(contract)[_name])


@pytest.fixture(scope="session")
def callers(
    skypilot_server: SkyPilotServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[SkyCaller]]:
    """Provide two callers, as of two processes of a portal."""
    homes = [tmp_path_factory.mktemp("sky-home") for _ in range(2)]
    found = [SkyCaller(CallerOptions(home=home, endpoint=skypilot_server.url)) for home in homes]
    yield found
    for caller in found:
        caller.close()


@pytest.fixture
def rig(machine: Rig, callers: list[SkyCaller], tmp_path: Path) -> Iterator[ClusterRig]:
    """Provide the backend on the rig, with nothing on it yet."""
    cluster = ClusterRig(tmp_path / "home", machine, callers)
    with cluster.reached():
        yield cluster
        cluster.close()
