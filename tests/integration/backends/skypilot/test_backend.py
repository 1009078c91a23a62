"""Guarantees of the SkyPilot backend beyond the contract, over a stand-in for SkyPilot's server."""

from __future__ import annotations

from dataclasses import replace

from jobs.backends.base import ClusterPhase
from tests.integration.backends.asking import launch, leftovers, retried, view_of, wait_for
from tests.integration.backends.stub_rig import StubRig


def test_a_second_attempt_on_the_same_nodes_is_not_missed_by_an_older_answer(
    stub_backend: StubRig,
) -> None:
    first = stub_backend.request("long")
    launch(stub_backend, first)
    wait_for(stub_backend, first, ClusterPhase.UP)
    # The nodes' answer to this look is still fresh when the second attempt is handed over.
    assert view_of(stub_backend, first).phase is ClusterPhase.UP
    second = replace(first, attempt_id=first.attempt_id + 10_000)
    launch(stub_backend, second)
    phases = {view_of(stub_backend, second).phase for _ in range(5)}
    assert phases <= {ClusterPhase.STARTING, ClusterPhase.UP}


def test_an_attempt_that_was_never_handed_over_has_left_nothing(stub_backend: StubRig) -> None:
    first = stub_backend.request("long")
    launch(stub_backend, first)
    wait_for(stub_backend, first, ClusterPhase.UP)
    other = first.attempt_id + 20_000
    left = leftovers(stub_backend, replace(first, attempt_id=other))
    assert list(left.frames) == []


def test_a_stop_is_refused_before_the_launch_where_the_place_keeps_no_machines(
    stub_backend: StubRig,
) -> None:
    spec = {
        "run": "true",
        "resources": {"infra": "slurm/main"},
        "portal": {"reuse": True, "idle": {"minutes": 5, "then": "stop"}},
    }
    [(path, why)] = retried(stub_backend, lambda: stub_backend.backend.check(spec))
    assert path == "portal.idle.then"
    assert "slurm" in why
