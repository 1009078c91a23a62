"""A ground for each file of the matrix on SkyPilot's machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.sky.ground import SkyGround


@pytest.fixture(scope="module")
def sky_ground(request: pytest.FixtureRequest) -> Iterator[SkyGround]:
    """A portal with the file's CARRIER, shared by its cells."""
    made = SkyGround(request.module.CARRIER)
    try:
        yield made
    finally:
        made.close()
