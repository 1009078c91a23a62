"""The crash matrix on SkyPilot's machines. Frames are pulled."""

from __future__ import annotations

import pytest

from tests.faults.sky.cells import SkyCell, cells_of
from tests.faults.sky.ground import SkyGround
from tests.faults.sky.play import SkyPlay

CARRIER = "pull"


@pytest.mark.feature("S2.2")
@pytest.mark.parametrize("cell", cells_of(CARRIER), ids=str)
def test_the_job_ends_right_once_on_one_cluster_at_a_time_when_struck_at(
    cell: SkyCell, sky_ground: SkyGround
) -> None:
    play = SkyPlay(sky_ground, cell)
    assert play.run() == [], play.report()
