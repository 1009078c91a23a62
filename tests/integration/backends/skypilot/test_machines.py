"""Machines of SkyPilot's backend that do not exist, or cannot be reached, after all."""

from __future__ import annotations

import pytest

from jobs.backends.base import ClusterPhase
from tests.integration.backends.asking import launch, stop, tear_down, view_of, wait_for
from tests.integration.backends.stub_rig import StubRig
from tests.runner_harness import wait_until


@pytest.mark.parametrize("looks", ["gone", "INIT"])
def test_an_attempt_whose_machines_were_taken_away_has_ended_and_is_not_started_elsewhere(
    stub_backend: StubRig, looks: str
) -> None:
    rig = stub_backend
    rig.stub.plan(preempted_looks=looks)
    request = rig.request("long")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    rig.stub.cloud.preempt(request.cluster_name)
    wait_for(rig, request, ClusterPhase.ENDED)
    launch(rig, request)
    assert view_of(rig, request).phase is ClusterPhase.ENDED
    assert rig.started_once(request.cluster_name)


def test_a_launch_that_was_cut_off_and_is_said_to_be_up_is_repaired(stub_backend: StubRig) -> None:
    rig = stub_backend
    rig.stub.plan(interrupted_looks="UP")
    rig.stub.strike("halt", "launch.up")
    request = rig.request("long")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.GONE)
    # By its row it is up: the first time it is only handed the attempt, and that is refused.
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.GONE)
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.UP)
    assert len(rig.incarnations(request.cluster_name)) == 1


def test_where_runners_can_only_print_their_log_is_followed_from_the_start(
    stub_backend: StubRig,
) -> None:
    before = stub_backend.backend.carrier
    stub_backend.cut_off()
    assert (before, stub_backend.backend.carrier) == ("either", "pull")
    request = stub_backend.request("long")
    launch(stub_backend, request)
    wait_for(stub_backend, request, ClusterPhase.UP)
    # No runner reads the stop request, so it is sent through SkyPilot at once.
    stop(stub_backend, request)
    wait_for(stub_backend, request, ClusterPhase.ENDED)


def test_a_launch_that_is_on_its_way_when_its_cluster_is_taken_down_leaves_nothing(
    stub_backend: StubRig,
) -> None:
    rig = stub_backend
    request = rig.request("long")
    # The folder is sent first: until that has its answer SkyPilot knows of no launch.
    rig.stub.strike("late", "blob", seconds=3)
    launch(rig, request)
    wait_until(lambda: rig.stub.witness.events("fault", do="late"))
    tear_down(rig, request.cluster_name)
    assert rig.stub.witness.events("launch_begun") != []
    assert rig.remains(request.cluster_name) == []
