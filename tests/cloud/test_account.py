"""A job on one machine, its cluster reused and released; Monarch on two. In this order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.cloud.account import Account
from tests.cloud.portal import PortalOnCloud
from tests.waiting import eventually

LINES = 200
JOB_S = 1500.0
IDLE_S = 1200.0
MONARCH = """
cat > driver.py <<'END'
from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes

class Hello(Actor):
    @endpoint
    def say(self):
        print("hello from host", current_rank().rank, flush=True)
        return 1

procs = meshes["hosts"].spawn_procs(per_host={"gpus": 1})
print("answers", sum(answer for _, answer in procs.spawn("hello", Hello).say.call().get()))
END
python3 driver.py
"""


def one_node(account: Account) -> dict[str, Any]:
    """Build a job whose machine waits for the next one, and then is stopped where possible."""
    idle: dict[str, Any] = {"minutes": 2}
    if account.can_stop:
        idle |= {"then": "stop", "down_after": 2}
    return {
        "name": "one-node",
        "resources": account.resources,
        "run": f"for i in $(seq {LINES}); do echo line $i; done; echo it ends >&2",
        "portal": {"reuse": True, "idle": idle},
    }


@pytest.fixture(scope="module")
def first(portal: PortalOnCloud, account: Account) -> int:
    """Run a job that leaves its cluster behind."""
    number = portal.submit(**one_node(account))
    portal.wait_for(number, timeout_s=JOB_S)
    return number


@pytest.fixture(scope="module")
def second(portal: PortalOnCloud, account: Account, first: int) -> int:
    """Run the same job again, at once."""
    number = portal.submit(**one_node(account))
    portal.wait_for(number, timeout_s=JOB_S)
    return number


@pytest.fixture(scope="module")
def on_two(portal: PortalOnCloud, account: Account) -> Iterator[int]:
    """Run a Monarch job on two machines, which are released when it ends."""
    number = portal.submit(
        name="two-nodes",
        resources=account.resources,
        run=MONARCH,
        portal={"meshes": {"hosts": 2}},
    )
    portal.wait_for(number, timeout_s=JOB_S)
    yield number


def test_every_line_comes_once_and_in_order(portal: PortalOnCloud, first: int) -> None:
    assert portal.job(first)["status"] == "SUCCEEDED", portal.log(first)
    lines = portal.log(first).splitlines()
    numbers = [int(line.rpartition(" ")[2]) for line in lines if " line " in f" {line}"]
    assert numbers == list(range(1, LINES + 1))
    assert any(line.endswith("it ends") for line in lines)


def test_the_next_job_takes_the_cluster_that_was_kept(
    portal: PortalOnCloud, first: int, second: int
) -> None:
    assert portal.job(second)["status"] == "SUCCEEDED", portal.log(second)
    here, there = portal.attempts(first)[-1], portal.attempts(second)[-1]
    assert there["cluster_name"] == here["cluster_name"]


def test_an_unused_warm_cluster_is_stopped_where_possible_and_given_back(
    portal: PortalOnCloud, account: Account, second: int
) -> None:
    name = portal.attempts(second)[-1]["cluster_name"]
    seen: set[str] = set()

    def is_gone() -> bool:
        row = portal.clusters().get(name)
        seen.update([row["status"]] if row else [])
        return row is None

    assert eventually(is_gone, timeout_s=IDLE_S), portal.clusters()
    assert ("STOPPED" in seen) == account.can_stop
    assert name not in portal.names_at_skypilot()


def test_monarch_workers_on_two_machines_answer(portal: PortalOnCloud, on_two: int) -> None:
    assert portal.job(on_two)["status"] == "SUCCEEDED", portal.log(on_two)
    assert "answers 2" in portal.log(on_two)
    workers = portal.attempts(on_two)[-1]["workers"]
    assert len({worker["address"].partition(":")[0] for worker in workers}) == 2


def test_what_it_has_cost_is_what_skypilot_charges(portal: PortalOnCloud, on_two: int) -> None:
    assert eventually(lambda: not portal.clusters(), timeout_s=IDLE_S), portal.clusters()
    # A machine that was lost on the way has cost something as well.
    assert eventually(
        lambda: all(each["usd"] is not None for each in portal.attempts(on_two)), timeout_s=120
    ), portal.attempts(on_two)
    for attempt in portal.attempts(on_two):
        billed = portal.billed(attempt["cluster_name"])
        assert Decimal(attempt["usd"]) == billed.quantize(Decimal("0.000001"))
        assert (billed > 0) == bool(Decimal(attempt["usd_per_hour"] or 0))


def test_nothing_is_left(portal: PortalOnCloud, on_two: int) -> None:
    assert portal.clear() == set()
    assert portal.mportal("clusters").stdout.count("mp") == 0
