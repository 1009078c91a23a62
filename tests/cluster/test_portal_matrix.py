"""The crash matrix on the rig: each process of the portal is killed at each step of a real launch.

One pair, which CLUSTER_SEED chooses; with FULL=1 all of them.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Any

import pytest

from tests.cluster.portal import AFTER_THE_OTHER_RANK, PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.waiting import eventually

SEED = int(os.environ.get("CLUSTER_SEED", "20261122"))
VICTIMS = ("web", "worker", "beat", "follower", "skypilot")
STEPS = ("provisioning", "setup", "running", "stopping", "tearing-down")
EVERY = list(product(VICTIMS, STEPS))
PAIRS = EVERY if os.environ.get("FULL") == "1" else random.Random(SEED).sample(EVERY, 1)
CODE = 7
LINES = 120
# One that is to be cancelled must not end before.
ENDLESS = 6000
RUN = """
for i in $(seq {lines}); do echo line $i of $SKYPILOT_NODE_RANK; sleep 0.1; done
{after}
exit {code}
"""
# What the log shows when a job has got to a step, or is about to.
MARKS = {
    "setup": "setting up",
    "running": "line 20 of 1",
    "stopping": "line 20 of 1",
    "tearing-down": f"line {LINES - 10} of 1",
}
STEP_S = 200.0


@pytest.mark.feature("S2.2")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("victim", "step"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_a_process_killed_at_a_step_does_no_harm(
    rig: Rig, portal: PortalOnRig, victim: str, step: str
) -> None:
    with no_cluster_twice(rig):
        number = portal.submit(**spec_for(step))
        get_to(rig, portal, number, step)
        portal.strike(victim)
        # The end may have come meanwhile.
        job = portal.wait_for(number, timeout_s=400)
        idle = eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=200)
        assert idle, (rig.states(), portal.logs())
    attempts = portal.attempts(number)
    cluster = attempts[-1]["cluster_name"]
    assert eventually(lambda: cluster not in portal.clusters(), timeout_s=60), portal.clusters()
    ending = ("CANCELLED", None) if step == "stopping" else ("FAILED", CODE)
    assert (job["status"], job["exit_code"]) == ending, portal.log(number)
    assert [attempt["number"] for attempt in attempts] == [1], portal.log(number)
    assert_each_line_once(portal.log(number), is_whole=step != "stopping")


def spec_for(step: str) -> dict[str, Any]:
    """Build the specification of the job that is struck at `step`."""
    lines = ENDLESS if step == "stopping" else LINES
    return {
        "name": "struck",
        "num_nodes": 2,
        "resources": {"infra": "slurm/rig"},
        "setup": "echo setting up; sleep 4",
        "run": RUN.format(lines=lines, after=AFTER_THE_OTHER_RANK, code=CODE),
    }


@contextmanager
def no_cluster_twice(rig: Rig) -> Iterator[None]:
    """Check until the block ends that Slurm never holds two allocations for one cluster."""
    is_over = threading.Event()
    doubled: list[str] = []

    def look() -> None:
        while not is_over.wait(0.5):
            # A controller that is busy answers the next time.
            with suppress(RuntimeError):
                held = Counter(rig.allocations())
                doubled.extend(name for name, count in held.items() if count > 1)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert doubled == []


def get_to(rig: Rig, portal: PortalOnRig, number: int, step: str) -> None:
    """Wait until the job has reached `step`."""
    if step == "provisioning":
        assert eventually(lambda: bool(rig.allocations()), timeout_s=STEP_S), portal.logs()
        return
    mark = MARKS[step]
    portal.wait_until(number, lambda _: mark in portal.log(number), STEP_S)
    if step == "stopping":
        portal.cancel(number)
    elif step == "tearing-down":
        cluster = portal.attempts(number)[-1]["cluster_name"]
        # Terminated before the first look: the kill then comes after everything, which is as hard.
        assert eventually(
            lambda: portal.clusters().get(cluster, {}).get("status") in {"STOPPING", None},
            timeout_s=STEP_S,
        )


def assert_each_line_once(log: str, *, is_whole: bool) -> None:
    """Check that each rank's output is there once, in order, and without a hole."""
    for rank in (0, 1):
        end = f" of {rank}"
        printed = [line.split("line ")[-1] for line in log.splitlines() if line.endswith(end)]
        numbers = [int(text.removesuffix(end)) for text in printed]
        assert numbers == list(range(1, len(numbers) + 1))
        assert not is_whole or len(numbers) == LINES
