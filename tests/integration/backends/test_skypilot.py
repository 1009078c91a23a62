"""What SkyPilot's backend makes of a server and of machines that fail, beside the contract."""

from __future__ import annotations

import pytest

from jobs.backends.base import ClusterPhase
from tests.integration.backends.asking import launch, view_of, wait_for
from tests.integration.backends.stub_rig import StubRig


@pytest.mark.parametrize("looks", ["gone", "INIT"])
def test_an_attempt_whose_machines_were_taken_away_has_ended_and_is_not_started_elsewhere(
    stub_backend: StubRig, looks
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
