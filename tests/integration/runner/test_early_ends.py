"""Runners that get a stop request or die at their start: their peers do not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monarch_client.crash_points import VARIABLE
from tests.fake_ca import make_authority
from tests.faults.held_points import HeldPoints
from tests.integration.runner.test_monarch_job import assert_clean
from tests.runner_harness import RunnerRig

MakeRig = Callable[..., RunnerRig]


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeldPoints:
    (tmp_path / "points").mkdir()
    held = HeldPoints(tmp_path / "points" / "held")
    right = RunnerRig._environment
    shown = {VARIABLE: str(held.place("runner.started", 0))}
    monkeypatch.setattr(RunnerRig, "_environment", lambda rig: {**right(rig), **shown})
    return held


def test_a_runner_requested_to_end_in_its_first_moment_says_so_and_goes(make_rig, points):
    rig = make_rig(nodes=2, run="sleep 300", tls=make_authority())
    points.hold("runner.started")
    rig.start(0)
    points.wait_for("runner.started")
    rig.stop_rank(0)
    points.let_go()
    rig.wait(10)
    assert rig.ingest.end["reason"] == "CANCELLED_BY_USER"
    assert_clean(rig)


def test_a_runner_that_died_before_it_had_a_certificate_still_ends_the_other_ranks(make_rig):
    rig = make_rig(nodes=2, run="sleep 300", tls=make_authority())
    state = rig.root(0) / "state"
    state.mkdir(parents=True)
    (state / "started").touch()  # all that it left
    rig.start()
    rig.wait(10)
    assert rig.ingest.end["reason"] == "WORKER_LOST"
    assert_clean(rig)


def test_programs_can_be_requested_to_end_by_the_signals_that_a_runner_holds_at_first(make_rig):
    rig = make_rig(run="grep SigBlk /proc/self/status; sleep 300")
    rig.start()
    rig.ingest.wait_for(lambda: bool(rig.ingest.texts()))
    (blocked,) = rig.ingest.texts()
    assert int(blocked.split()[1], 16) == 0
    rig.stop_rank(0)
    rig.wait(10)
    assert_clean(rig)
