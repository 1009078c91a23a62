"""The numbers of charts: where lines go, where they break, and their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.web.base import figures
from jobs.web.jobs import charts
from jobs.web.jobs.charts import Chart, charts_of
from monarch_client.wire.metrics import Columns, Series


def series(times: list[float], **columns: Any) -> Series:
    nothing: list[None] = [None] * len(times)
    names = ("cpu", "memory", "disk", "net_in", "net_out")
    own = {**dict.fromkeys(names, nothing), "gpu": [], "gpu_memory": [], **columns}
    return Series(rank=0, step_s=0.0, columns=Columns(t=times, **own))


def only(view: Series) -> Chart:
    (chart,) = charts_of(view, [])
    return chart


def test_a_line_goes_from_the_left_to_the_right_and_a_hundred_is_the_top() -> None:
    chart = only(series([100, 110, 120], cpu=[0.0, 50.0, 100.0]))
    middle = (charts.LEFT + charts.RIGHT) / 2
    (drawn,) = chart.lines[0].segments
    height = (charts.TOP + charts.BOTTOM) // 2
    points = [(charts.LEFT, charts.BOTTOM), (middle, height), (charts.RIGHT, charts.TOP)]
    assert drawn == " ".join(f"{x:g},{y:g}" for x, y in points)
    assert [row.label for row in chart.rows] == ["0 %", "50 %", "100 %"]
    assert [column.label for column in chart.columns] == ["0", "10 s", "20 s"]
    assert chart.summary == "Processor. CPU: last 100 %, mean 50 %, highest 100 %."
    assert [band.words for band in chart.bands] == ["0 s: 0 %", "10 s: 50 %", "20 s: 100 %"]


def test_where_nothing_was_reported_for_long_the_line_breaks() -> None:
    times: list[float] = [0, 10, 20, 30, 600, 610]
    chart = only(series(times, cpu=[1.0, None, 1.0, 1.0, 1.0, 1.0]))
    assert [segment.count(",") for segment in chart.lines[0].segments] == [3, 2]
    assert chart.bands[1].words == "10 s: not known"


def test_a_slow_pace_is_no_gap() -> None:
    chart = only(series([0, 300, 600, 900], cpu=[1.0, 2.0, 3.0, 4.0]))
    assert len(chart.lines[0].segments) == 1


def test_a_single_point_is_drawn_as_well() -> None:
    chart = only(series([50], cpu=[40.0]))
    first, second = chart.lines[0].segments[0].split(" ")
    assert first == second


def test_an_unreported_value_has_no_chart() -> None:
    assert charts_of(series([0, 10]), []) == []
    assert charts_of(series([]), []) == []


def test_each_gpu_has_a_line_and_more_gpus_than_colors_are_drawn() -> None:
    chart = only(series([0, 10], gpu=[[1.0, float(n)] for n in range(10)]))
    assert [line.name for line in chart.lines] == [f"GPU {n}" for n in range(10)]
    assert chart.lines[9].now == "9 %"
    assert {line.color for line in chart.lines} == set(range(charts.COLORS))


def test_traffic_has_a_round_top_above_its_highest() -> None:
    chart = only(series([0, 10], net_in=[0, 3_000_000], net_out=[10, 20]))
    assert [row.label for row in chart.rows] == ["0 B/s", "2.0 MiB/s", "4.0 MiB/s"]
    assert [line.name for line in chart.lines] == ["In", "Out"]


def test_a_long_history_has_a_bounded_number_of_places_to_point_at() -> None:
    times = [float(n) for n in range(1000)]
    chart = only(series(times, cpu=[1.0] * 1000))
    assert len(chart.bands) <= charts.MOST_BANDS
    assert chart.bands[0].x == charts.LEFT
    last = chart.bands[-1]
    assert last.x + last.width == pytest.approx(charts.RIGHT)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (figures.amount(None), "–"),
        (figures.amount(1023), "1023 B"),
        (figures.amount(1024), "1.0 KiB"),
        (figures.amount(80 << 30), "80 GiB"),
        (figures.amount(3 << 50), "3072 TiB"),
        (figures.rate(0), "0 B/s"),
        (figures.percent(None), "–"),
        (figures.percent(37.4), "37 %"),
        (figures.span(90), "90 s"),
        (figures.span(1200), "20 min"),
        (figures.span(86_400), "24 h"),
        (figures.span(864_000), "10 d"),
        (figures.round_top(1), 1),
        (figures.round_top(1025), 2048),
        (figures.round_top(1024 * 900), 1024 * 1024),
    ],
)
def test_numbers_are_said_as_people_would(said: object, words: object) -> None:
    assert said == words
