"""`python -m tests.faults.model.replay SCRIPT`: the steps of a script again, on a fresh portal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from tests.faults.model.driver import Driver, PortalDriver, ViolationError
from tests.faults.model.programs import NODES
from tests.faults.model.report import report
from tests.faults.model.steps import Step, load
from tests.faults.model.walk import Walk
from tests.portal_process import PortalProcess


def replay(steps: Sequence[Step], driver: Driver, say: Callable[[str], object]) -> None:
    """Perform the steps and the end of every run. ViolationError, as when they were found."""
    walk = Walk(driver)
    for step in steps:
        say(str(step))
        walk.perform(step)
    say("to the end")
    walk.finish()


def portal_for_models() -> PortalProcess:
    """Create a portal with so little capacity that jobs wait for each other; not started yet."""
    return PortalProcess(MPORTAL_LOCAL_NODES=str(NODES))


def main(script: Path, times: int) -> int:
    """Replay a script on a portal of its own, at most so often: 1 as soon as something is found."""
    portal = portal_for_models()
    try:
        portal.start()
        with closing(PortalDriver(portal)) as driver:
            for _ in range(times):
                driver.clean()
                replay(load(script), driver, _say)
    except ViolationError as violation:
        _say(f"FOUND: {violation}\n{report(portal)}")
        return 1
    finally:
        portal.close()
    _say("nothing found")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.model.replay", description=__doc__
    )
    parser.add_argument("script", type=Path)
    parser.add_argument("--times", type=int, default=1, help="until something is found")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(**vars(_arguments())))
