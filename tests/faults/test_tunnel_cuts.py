"""Interruptions of a SkyPilotJob's tunnel that are longer than the time-outs of drivers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.monarch_workers import MonarchWorkers
from tests.tunnel_driver import Driver

# Until then nothing of Monarch's looks for orphans.
OLD_S = 12.0


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("cut_s", "silently"), [(20, True), (75, False)])
def test_calls_are_answered_once_and_in_order_after_the_cut(
    tmp_path: Path, cut_s: float, silently: bool
) -> None:
    workers = MonarchWorkers(tmp_path, 2)
    driver = Driver(tmp_path, workers)
    try:
        driver.call(OLD_S)
        assert driver.answer() == "True"
        driver.call(1)
        with driver.network.cut(silently=silently):
            # The length is the subject: nothing is to be awaited.
            time.sleep(cut_s)
        driver.call()
        assert [driver.answer(), driver.answer()] == ["True", "True"], driver.log
    finally:
        driver.close()
        workers.close()
