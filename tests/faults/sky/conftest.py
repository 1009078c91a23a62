"""A ground for each file of the matrix on SkyPilot's machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.sky.ground import SkyGround

HERE = Path(__file__).parent
# A cell waits for many things one after the other, each with a limit of its own.
LONGEST_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound the duration of the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(LONGEST_S))


@pytest.fixture(scope="module")
def sky_ground(request: pytest.FixtureRequest) -> Iterator[SkyGround]:
    """Provide a portal with the file's CARRIER, shared by its cells."""
    made = SkyGround(request.module.CARRIER)
    try:
        yield made
    finally:
        made.close()
