"""Histories of bounded length."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.policies.series import (
    MOST_POINTS,
    MOST_RECENT,
    Point,
    columns_of,
    folded,
    percent,
    point_of,
)


def sample(cpu: float | None = 50.0, gpus: tuple[float | None, ...] = ()) -> dict[str, Any]:
    return {
        "cpu": cpu,
        "memory_used": 1,
        "memory_total": 4,
        "disk_used": None,
        "disk_total": 8,
        "net_in": 100,
        "net_out": 0,
        "gpus": [{"utilization": use, "memory_used": 1, "memory_total": 2} for use in gpus],
    }


def history(seconds: int, every: int = 10, **fields: Any) -> tuple[list[Point], float]:
    """Return what is kept of so many seconds of samples, folded as they arrived."""
    kept: list[Point] = []
    recent: list[Point] = []
    step_s = 0.0
    for at in range(0, seconds, every):
        recent.append(point_of(sample(**fields), at))
        if len(recent) == MOST_RECENT:
            kept, step_s = folded(kept, recent, step_s)
            recent = []
    return [*kept, *recent], step_s


def test_a_short_history_keeps_every_sample() -> None:
    points, step_s = history(7000)
    assert (len(points), step_s) == (700, 0)
    assert [point[0] for point in points] == list(range(0, 7000, 10))


@pytest.mark.parametrize("hours", [3, 24, 24 * 30])
def test_a_long_history_is_bounded_and_still_reaches_from_its_beginning_to_its_end(
    hours: int,
) -> None:
    points, step_s = history(hours * 3600, every=10 if hours < 100 else 60)
    assert MOST_POINTS / 4 < len(points) <= MOST_POINTS + MOST_RECENT
    assert points[0][0] == 0
    assert points[-1][0] > hours * 3600 - 2 * step_s - 60
    assert [point[0] for point in points] == sorted(point[0] for point in points)


def test_what_is_thinned_keeps_its_mean_however_often_it_is_thinned() -> None:
    recent = [point_of(sample(cpu=float(at % 2 * 100)), at) for at in range(6000)]
    points, _ = folded([], recent, 0)
    cpu = sum(point[2] * point[1] for point in points) / sum(point[1] for point in points)
    assert cpu == pytest.approx(50, abs=0.5)
    assert sum(point[1] for point in points) == 6000


def test_a_gpu_that_reported_nothing_for_a_while_is_no_gpu_at_rest() -> None:
    recent = [point_of(sample(gpus=(None if at % 4 else 80.0, 10.0)), at) for at in range(2000)]
    points, _ = folded([], recent, 0)
    columns = columns_of(points)
    assert {use for use in columns["gpu"][0] if use is not None} == {80.0}
    assert set(columns["gpu"][1]) == {10.0}
    assert set(columns["gpu_memory"][1]) == {50.0}


def test_columns_line_up_where_a_gpu_comes_later() -> None:
    columns = columns_of([point_of(sample(), 1), point_of(sample(gpus=(5.0,)), 2)])
    assert columns["gpu"] == [[None, 5.0]]
    assert columns["t"] == [1, 2]
    assert (columns["memory"], columns["disk"]) == ([25.0, 25.0], [None, None])
    assert columns_of([])["gpu"] == []


def test_per_cent_of_nothing_is_not_known() -> None:
    assert percent(1, 0) is None
    assert percent(None, 4) is None
    assert percent(9, 4) == 100


@pytest.mark.parametrize(
    "times",
    [
        [5.0] * 2000,
        [0.0] * 1000 + [4e9] * 1000,
        [number / 1000 for number in range(5000)],
        [1.02**number for number in range(1000)],
    ],
)
def test_whatever_the_times_are_the_history_is_bounded(times: list[float]) -> None:
    points, _ = folded([], [point_of(sample(), at) for at in times], 0)
    assert len(points) <= MOST_POINTS
