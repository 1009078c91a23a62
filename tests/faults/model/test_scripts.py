"""A planted fault is found, shrunk to the few steps it needs, and shown again by its script."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from jobs.statuses import JobStatus
from tests.faults.model import model
from tests.faults.model.driver import Driver, PortalDriver, Reply, ViolationError
from tests.faults.model.machine import LifeCycle
from tests.faults.model.parts import BREAKABLE
from tests.faults.model.pretended import PretendedPortal
from tests.faults.model.replay import portal_for_models, replay
from tests.faults.model.report import report
from tests.faults.model.steps import Step, load
from tests.waiting import eventually

say = logging.getLogger(__name__).info


class LiesAboutCancel:
    """A driver that reports a job as being cancelled, and does nothing about it."""

    def act(self, verb: str, job_id: int) -> Reply:
        if verb == "cancel":
            return Reply(202, "", None)
        reply: Reply = super().act(verb, job_id)
        return reply


class LyingPretended(LiesAboutCancel, PretendedPortal): ...


class LyingReal(LiesAboutCancel, PortalDriver): ...


class DeletesTwice(PretendedPortal):
    """A deleted job can be deleted again."""

    def act(self, verb: str, job_id: int) -> Reply:
        reply = super().act(verb, job_id)
        return Reply(204, "", None) if verb == "delete" and reply.status == 404 else reply


def failures_that_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set one wrong edge in the model: jobs that fail are expected to end as CANCELLED."""
    right = model.onward

    def wrong(world, program):
        for following in right(world, program):
            fails = following.status == JobStatus.FAILED and world.status == JobStatus.RUNNING
            yield replace(following, status=JobStatus.CANCELLED) if fails else following

    monkeypatch.setattr(model, "onward", wrong)


def script_of(make: Callable[[], Driver], folder: Path) -> Path:
    """Return the path of the script that is left when hypothesis has shrunk what it found."""

    class Planted(LifeCycle):
        results = folder

        def __init__(self) -> None:
            type(self).driver = make()
            super().__init__()

    with pytest.raises(ViolationError) as caught:
        run_state_machine_as_test(
            seed(1)(Planted),
            settings=settings(
                max_examples=200,
                stateful_step_count=12,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                phases=(Phase.generate, Phase.shrink),
            ),
        )
    path = folder / "life-cycle.json"
    assert any(str(path) in note for note in caught.value.__notes__)
    return path


@pytest.mark.parametrize(
    ("make", "most"),
    # The second needs moments to pass between the cancel and the deletions.
    [(LyingPretended, 2), (DeletesTwice, 6)],
)
def test_a_planted_fault_shrinks_to_the_steps_it_needs_and_its_script_shows_it_again(
    make, most, tmp_path
):
    steps = load(script_of(make, tmp_path))
    assert len(steps) <= most
    with pytest.raises(ViolationError):
        replay(steps, make(), say)
    replay(steps, PretendedPortal(), say)


def test_a_wrong_edge_of_the_model_shrinks_to_one_job_that_takes_it_and_one_look(
    tmp_path, monkeypatch
):
    with monkeypatch.context() as patched:
        failures_that_are_cancelled(patched)
        steps = load(script_of(PretendedPortal, tmp_path))
        assert steps[0] == Step("submit", "j1", program="failing")
        assert len(steps) == 2
        with pytest.raises(ViolationError):
            replay(steps, PretendedPortal(), say)
    replay(steps, PretendedPortal(), say)


def test_a_script_shows_on_a_real_portal_what_it_showed_when_it_was_found(tmp_path):
    steps = load(script_of(LyingPretended, tmp_path))
    portal = portal_for_models()
    try:
        portal.start()
        with closing(LyingReal(portal)) as liar, pytest.raises(ViolationError):
            replay(steps, liar, say)
        with closing(PortalDriver(portal)) as driver:
            assert driver.clean()
            replay(steps, driver, say)
    finally:
        portal.close()


def test_a_failure_shows_the_state_of_every_part_of_its_portal():
    portal = portal_for_models()
    try:
        portal.start()
        with closing(PortalDriver(portal)) as driver:
            driver.harm("freeze", "redis", "now")
            assert eventually(lambda: "wait, 1 takers" in driver.report())
            # The first steps have asked something.
            assert eventually(lambda: "SELECT" in driver.report())
            text = driver.report()
            assert all(f"'{part}': " in text and f"== {part}.log" in text for part in BREAKABLE)
        portal.stop()
        text = report(portal)
        assert "redis: ConnectionError" in text
        assert "postgres: OperationalError" in text
    finally:
        portal.close()


def test_a_faultless_portal_passes(tmp_path):
    class Faultless(LifeCycle):
        results = tmp_path

        def __init__(self) -> None:
            type(self).driver = PretendedPortal()
            super().__init__()

    many = settings(max_examples=100, stateful_step_count=20, deadline=None, database=None)
    run_state_machine_as_test(seed(1)(Faultless), settings=many)
    assert list(tmp_path.iterdir()) == []
