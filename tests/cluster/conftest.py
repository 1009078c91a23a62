"""The rig, and an API server of SkyPilot's on it, for tests that run inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.portal import PortalOnRig, portal_on
from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here needs the rig, and a launch alone may take a minute."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
            # A launch costs up to a minute, and tests of a file share it.
            item.add_marker(pytest.mark.together)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def machine() -> Rig:
    """The rig that the tests run in."""
    if not places.MACHINE_FILE.exists():
        pytest.fail("These tests run inside the rig: `make cluster-test ARGS='-k ...'`")
    return Rig()


@pytest.fixture(scope="session")
def rig(machine: Rig) -> Rig:
    """The same. In the contract of backends this name is that of another rig, on this one."""
    return machine


@pytest.fixture(scope="session")
def portal(machine: Rig) -> Iterator[PortalOnRig]:
    """A portal with its own SkyPilot server. Leave it running, and no cluster on it."""
    with portal_on(machine) as portal:
        yield portal


@pytest.fixture(scope="session")
def skypilot_server(machine: Rig) -> Iterator[SkyPilotServer]:
    """An API server that belongs to no portal, on the rig's home."""
    server = SkyPilotServer(machine.home)
    try:
        server.start()
        yield server
    finally:
        server.close()
