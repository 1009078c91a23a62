"""Answers of SkyPilot that must not keep an attempt, or a thread of the portal, for ever."""

from __future__ import annotations

import threading

import pytest

from jobs.backends.base import ClusterPhase
from jobs.backends.skypilot import backend as skypilot
from jobs.errors import NoCapacityError
from tests.integration.backends.asking import launch, leftovers, view_of, wait_for
from tests.integration.backends.stub_rig import StubRig
from tests.integration.backends.test_keepers import done, next_on
from tests.waiting import eventually


@pytest.mark.parametrize("error", ["ClusterNotUpError", "ClusterDoesNotExist"])
def test_an_attempt_whose_warm_machines_were_lost_at_the_handover_is_requested_again(
    stub_backend: StubRig, error: str
) -> None:
    second = next_on(stub_backend, done(stub_backend), "long")
    stub_backend.stub.strike("error", "exec", type=error, message="not there")
    launch(stub_backend, second)
    wait_for(stub_backend, second, ClusterPhase.GONE)
    launch(stub_backend, second)
    wait_for(stub_backend, second, ClusterPhase.UP)


@pytest.mark.parametrize("error", ["ConnectionError", "ClusterNotUpError"])
def test_a_launch_whose_cloud_did_not_answer_is_tried_later_and_waits_for_no_server(
    stub_backend: StubRig, error: str
) -> None:
    request = stub_backend.request("long")
    stub_backend.stub.strike("error", "launch", type=error, message="cloud.example: refused")
    launch(stub_backend, request)
    wait_for(stub_backend, request, ClusterPhase.FAILED)
    failure = view_of(stub_backend, request).failure
    assert isinstance(failure, NoCapacityError)
    assert "cloud.example" in failure.message


def test_reading_what_a_runner_left_comes_back_although_its_job_goes_on(
    stub_backend: StubRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skypilot, "LEFTOVERS_S", 3.0)
    stub_backend.cut_off()
    request = stub_backend.request("long")
    launch(stub_backend, request)
    wait_for(stub_backend, request, ClusterPhase.UP)
    stub_backend.wait_for_line(request.cluster_name)
    found: list[bytes] = []
    thread = threading.Thread(
        target=lambda: found.extend(leftovers(stub_backend, request).frames), daemon=True
    )
    thread.start()
    assert eventually(lambda: not thread.is_alive(), timeout_s=30)
    assert found
    assert view_of(stub_backend, request).phase is ClusterPhase.UP
