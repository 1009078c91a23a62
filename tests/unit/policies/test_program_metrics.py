"""Metrics in lines of a program, and histories of bounded length."""

from __future__ import annotations

import math

import pytest

from jobs.policies.program_metrics import (
    MOST_NAMES_OF_LINE,
    MOST_POINTS,
    MOST_RECENT,
    History,
    joined,
    report_of,
    thinned,
)


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("step=3 loss=0.25", 3, {"loss": 0.25}),
        (
            "[epoch 1] step=3, loss=2.5e-3, acc=93.1% lr=.1",
            3,
            {"loss": 0.0025, "acc": 93.1, "lr": 0.1},
        ),
        ("train/loss=1. step=0", 0, {"train/loss": 1.0}),
        ("step=7 loss=nan grad=-inf n=12", 7, {"loss": None, "grad": None, "n": 12.0}),
        ("step=7 at=10.0.0.1 rev=1.2.3 id=7f n=1.", 7, {"n": 1.0}),
    ],
)
def test_pairs_with_a_step_are_a_report(line, step, values):
    report = report_of(2, 5.0, line)
    assert report is not None
    assert (report.rank, report.at, report.step, report.values) == (2, 5.0, step, values)


@pytest.mark.parametrize(
    "line",
    [
        "loss=0.25",
        "step=3",
        "step=-1 loss=1",
        "step=1.5 loss=1",
        "laststep=1 loss=1",
        "step=1e400 loss=1",
        "step=3 name=abc",
        "step=1 loss=1 " + "x" * 2000,
    ],
)
def test_other_lines_are_none(line):
    assert report_of(0, 0.0, line) is None


def test_a_line_has_a_limited_number_of_names():
    line = "step=1 " + " ".join(f"n{number}=1" for number in range(100))
    report = report_of(0, 0.0, line)
    assert report is not None
    assert len(report.values) == MOST_NAMES_OF_LINE


def history_of(values) -> History:
    history = History(0.0, 0, None)
    for step, value in enumerate(values):
        history.add(float(step), step, value)
        if history.is_full:
            history.fold()
    return history


def test_a_long_history_has_few_points_that_all_cover_as_many_reports():
    history = history_of([float(step) for step in range(100_000)])
    assert len(history.old) <= MOST_POINTS
    assert len(history.recent) < MOST_RECENT
    assert {point[2] for point in history.old[:-1]} == {history.stride}
    assert sum(point[2] for point in history.old) + len(history.recent) == 100_000
    middle = history.old[len(history.old) // 2]
    assert math.isclose(middle[3], middle[1] + (history.stride - 1) / 2)
    assert (history.step, history.value, history.lowest, history.highest) == (
        99_999,
        99_999.0,
        0.0,
        99_999.0,
    )


def test_values_that_are_not_finite_do_not_change_means():
    history = history_of([None, 1.0, None, 3.0])
    assert (history.lowest, history.highest) == (1.0, 3.0)
    assert thinned(history.recent, 1) == [[0.0, 0, 4, 2.0]]
    assert thinned(history_of([1e308, 1e308]).recent, 1)[0][3] is None


def test_a_later_attempt_replaces_the_steps_that_it_repeats():
    first = [[float(step), step, 1, 1.0] for step in range(1, 6)]
    second = [[float(10 + step), step, 1, 2.0] for step in range(4, 8)]
    assert joined([]) == joined([[]]) == []
    assert joined([first, [], second]) == [*first[:3], *second]
