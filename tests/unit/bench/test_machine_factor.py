"""The factor that makes figures of two hours comparable: its direction, and its reference."""

from __future__ import annotations

import json
from datetime import date

import pytest

from bench.machine_factor import (
    REFERENCE_FILE,
    Speeds,
    best,
    machine_fields,
    middle,
    reference_content,
    reference_speeds,
)

REFERENCE = Speeds(python=50, memcpy=8, postgresql=20_000)


def times(factor: float) -> Speeds:
    return Speeds(50 * factor, 8 * factor, 20_000 * factor)


def test_the_factor_is_1_at_the_reference_values_that_are_checked_in():
    speeds = reference_speeds()
    assert machine_fields(speeds, speeds, speeds) == {
        "machine_factor": 1,
        "machine_parts": {"python": 1, "memcpy": 1, "postgresql": 1},
        "machine_unsteady": False,
    }


def test_a_machine_that_is_twice_as_fast_has_the_factor_2():
    fields = machine_fields(times(2), times(2), REFERENCE)
    assert fields["machine_factor"] == 2
    assert fields["machine_parts"] == {"python": 2, "memcpy": 2, "postgresql": 2}


def test_no_probe_outweighs_the_others():
    # A factor of two in one of three: the third root of 2, whichever it is.
    for speeds in (Speeds(100, 8, 20_000), Speeds(50, 16, 20_000), Speeds(50, 8, 40_000)):
        assert machine_fields(speeds, speeds, REFERENCE)["machine_factor"] == 1.26


def test_a_machine_whose_speed_changed_during_the_run_is_called_unsteady():
    for end, unsteady in ((1.25, False), (1.35, True), (0.7, True)):
        fields = machine_fields(times(1), times(end), REFERENCE)
        assert fields["machine_unsteady"] is unsteady
        assert fields["machine_factor"] == pytest.approx((1 + end) / 2)


def test_a_run_takes_the_middle_of_its_samples_and_a_reference_the_best():
    found = [Speeds(10, 3, 5), Speeds(30, 1, 6), Speeds(20, 2, 100)]
    assert middle(found) == Speeds(20, 2, 6)
    assert best(found) == Speeds(30, 3, 100)


def test_the_reference_that_is_checked_in_says_when_and_on_which_machine_it_was_taken():
    content = json.loads(REFERENCE_FILE.read_text())
    assert content.keys() == reference_content([REFERENCE]).keys()
    date.fromisoformat(content["taken"])  # or it fails
    assert " x " in content["machine"]
    assert all(value > 0 for value in content["speeds"].values())
