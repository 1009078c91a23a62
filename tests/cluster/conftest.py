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
    """Mark the tests here: all need the rig, and a launch alone may take a minute."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
            # A launch costs up to a minute, and tests of a file share it.
            item.add_marker(pytest.mark.together)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def machine() -> Rig:
    """Provide the rig in which the tests run."""
    if not places.MACHINE_FILE.exists():
        pytest.fail("These tests run inside the rig: `make cluster-test ARGS='-k ...'`")
    return Rig()


@pytest.fixture(scope="session")
def rig(machine: Rig) -> Rig:
    """Provide the same rig.

    The contract of backends uses this name for another rig, which runs on this one.
    """
    return machine


@pytest.fixture(scope="session")
def portal(machine: Rig) -> Iterator[PortalOnRig]:
    """Start a portal with its own SkyPilot server. Tests leave it running, and no cluster on it."""
    with portal_on(machine) as portal:
        yield portal


@pytest.fixture(scope="session")
def skypilot_server(machine: Rig) -> Iterator[SkyPilotServer]:
    """Start an API server that belongs to no portal, on the rig's home."""
    server = SkyPilotServer(machine.home)
    try:
        server.start()
        yield server
    finally:
        server.close()
