"""The crash matrix. From the verdict to a sealed log."""

from __future__ import annotations

import pytest

from tests.faults.cells import Cell, cells_of
from tests.faults.ground import Ground
from tests.faults.play import Play


@pytest.mark.feature("P2.1")
@pytest.mark.parametrize("cell", cells_of("end"), ids=str)
def test_the_job_ends_right_once_and_leaves_nothing_when_struck_at(
    cell: Cell, ground: Ground
) -> None:
    play = Play(ground, cell)
    assert play.run() == [], play.report()
