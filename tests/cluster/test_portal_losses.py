"""Nodes die, allocations are taken away, processes of the portal are killed: the job ends right."""

from __future__ import annotations

import os
import random
from decimal import Decimal

import pytest

from tests.cluster.portal import PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.waiting import eventually

SEED = int(os.environ.get("CLUSTER_SEED", "20261122"))
RESOURCES = {"infra": "slurm/rig"}
# Machines for money that their owner may take away.
SPOT = {"infra": "rig/rig", "use_spot": True}
# In its third attempt it has been through everything.
UNTIL_THE_THIRD = """
echo "attempt $MPORTAL_ATTEMPT on $SKYPILOT_NODE_RANK"
[ "$MPORTAL_ATTEMPT" = 3 ] || sleep 600
"""


@pytest.fixture(autouse=True)
def nothing_remains(rig: Rig) -> object:
    """Check after each test that every node is idle again."""
    yield
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=120), rig.states()


@pytest.mark.feature("S0.8")
@pytest.mark.timeout(600)
def test_a_lost_node_and_a_preemption_lead_to_new_attempts_and_success(
    rig: Rig, portal: PortalOnRig
) -> None:
    number = portal.submit(name="enduring", num_nodes=2, resources=SPOT, run=UNTIL_THE_THIRD)
    portal.wait_until(number, lambda _: "attempt 1 on 1" in portal.log(number))
    victim = rig.nodes_of(portal.attempts(number)[-1]["cluster_name"])[1]
    rig.kill_node(victim)
    portal.wait_for(number, "RECOVERING", "PROVISIONING")
    rig.revive_node(victim)
    portal.wait_until(number, lambda _: "attempt 2 on 1" in portal.log(number))
    rig.scancel(portal.attempts(number)[-1]["cluster_name"])
    ended = portal.wait_for(number)
    assert ended["status"] == "SUCCEEDED", portal.log(number)
    attempts = portal.attempts(number)
    reasons = [attempt["stop_reason"] for attempt in attempts]
    assert reasons == ["WORKER_LOST", "WORKER_LOST", "COMPLETED"]
    assert all(Decimal(str(attempt["usd_per_hour"])) > 0 for attempt in attempts)


def test_a_job_cancelled_while_it_is_provisioned_leaves_no_machine(
    rig: Rig, portal: PortalOnRig
) -> None:
    number = portal.submit(name="never", num_nodes=2, resources=RESOURCES, run="sleep 600")
    assert eventually(lambda: _some_busy(rig), timeout_s=120)
    portal.cancel(number)
    assert portal.wait_for(number)["status"] == "CANCELLED"


@pytest.mark.timeout(600)
def test_processes_killed_while_a_job_starts_and_runs_do_no_harm(
    rig: Rig, portal: PortalOnRig
) -> None:
    chance = random.Random(SEED)
    victims = ["worker", "follower", "web", "skypilot"]
    chance.shuffle(victims)
    number = portal.submit(
        name="unharmed",
        resources=RESOURCES,
        run="for i in $(seq 200); do echo line $i; sleep 0.1; done; exit 7",
    )
    for victim in victims[:2]:
        assert eventually(lambda: _some_busy(rig), timeout_s=120)
        portal.strike(victim)
    portal.wait_until(number, lambda _: "line 20" in portal.log(number))
    for victim in victims[2:]:
        portal.strike(victim)
    ended = portal.wait_for(number)
    assert (ended["status"], ended["exit_code"]) == ("FAILED", 7)
    assert [attempt["number"] for attempt in portal.attempts(number)] == [1]
    lines = [line for line in portal.log(number).splitlines() if " line " in f" {line}"]
    assert len(lines) == 200


def _some_busy(rig: Rig) -> bool:
    return any(state != "idle" for state in rig.states().values())
