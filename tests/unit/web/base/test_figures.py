"""Formats of numbers: few hours, and the round tops of axes."""

from __future__ import annotations

import pytest

from jobs.web.base.figures import hours, mean_time, plain, round_above


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "?"), (0, "0"), (0.004, "0.004"), (0.12, "0.12"), (3, "3.0"), (1234.56, "1,234.6")],
)
def test_the_fewer_hours_the_more_places(value, said):
    assert hours(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"),
        (25e-6, "25 µs"),
        (1.25, "1.25 s"),
        (3123, "3,123 s"),
        (999.6, "1,000 s"),
        (0.9996, "1 s"),
        (0.0009996, "1 ms"),
    ],
)
def test_a_mean_time_has_three_digits_and_never_an_exponent(seconds, said):
    assert mean_time(seconds) == said


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0, 0.001), (0.12, 0.2), (1, 1), (1.01, 2), (54.2, 60), (2000, 2000), (90, 100)],
)
def test_the_top_of_an_axis_is_round_and_not_below_the_highest(highest, top):
    assert round_above(highest) == pytest.approx(top)
    assert round_above(highest) >= highest


def test_a_round_number_has_no_needless_places():
    assert [plain(each) for each in (0.05, 2.5, 2500.0, 0)] == ["0.05", "2.5", "2,500", "0"]
