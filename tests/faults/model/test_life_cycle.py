"""The model test: whatever is requested or breaks, every job lives as documented, once.

MODEL_EXAMPLES=200 runs so many with other seeds each time; MODEL_SEED=n repeats one of them.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.model.driver import PortalDriver
from tests.faults.model.machine import LifeCycle
from tests.faults.model.replay import portal_for_models
from tests.portal_process import PortalProcess

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "0"))
# Without MODEL_EXAMPLES always the same few scripts, so that what fails fails again.
USUAL_EXAMPLES, USUAL_SEED = 16, 20260828
STEPS = 12


class Portals:
    """A portal for one example after the other; another one where a fault has spoilt the last."""

    def __init__(self) -> None:
        self._portal: PortalProcess | None = None
        self._driver: PortalDriver | None = None

    def driver(self) -> PortalDriver:
        """Return a driver of a portal without jobs."""
        if self._driver is None or not self._driver.clean():
            self.close()
            self._portal = portal_for_models()
            self._portal.start()
            self._driver = PortalDriver(self._portal)
        return self._driver

    def close(self) -> None:
        """End what was started."""
        if self._driver is not None:
            self._driver.close()
        if self._portal is not None:
            self._portal.close()
        self._portal = self._driver = None


@pytest.fixture
def portals() -> Iterator[Portals]:
    portals = Portals()
    yield portals
    portals.close()


@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_every_job_goes_through_its_life_as_documented_whatever_breaks(portals, record_property):
    number = int(os.environ.get("MODEL_SEED", random.randrange(10**9) if EXAMPLES else USUAL_SEED))
    record_property("seed", number)
    sys.stdout.write(f"MODEL_SEED={number}\n")

    class OnThePortal(LifeCycle):
        script = f"life-cycle-{number}"

        def __init__(self) -> None:
            type(self).driver = portals.driver()
            super().__init__()

    run_state_machine_as_test(
        seed(number)(OnThePortal),
        settings=settings(
            max_examples=EXAMPLES or USUAL_EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            # A portal that recovers takes its time, and each example brings it to its end.
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            print_blob=False,
        ),
    )
