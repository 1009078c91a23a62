"""Charts of one value on all ranks: axes, gaps, the marked moment."""

from __future__ import annotations

from jobs.web.jobs.charts import BOTTOM, LEFT, RIGHT, TOP
from jobs.web.jobs.line_charts import (
    Kind,
    Window,
    axis_number,
    line_chart,
    number,
    rank_series,
    window_of,
    within,
)

LOSS = Kind("loss", number)


def test_all_ranks_share_the_axes():
    series = [rank_series(0, [0, 10], [1.0, 3.0]), rank_series(1, [5, 20], [None, -1.0])]
    window = window_of(series)
    assert window == Window(0, 20)
    chart = line_chart(LOSS, series, window)
    assert chart is not None
    first, second = chart.lines
    assert first.segments[0].startswith(f"{LEFT},")
    assert second.segments[0].startswith(f"{RIGHT},")
    assert [row.at for row in chart.rows] == [BOTTOM, (TOP + BOTTOM) / 2, TOP]
    assert [row.label for row in chart.rows] == ["-1.2", "1", "3.2"]
    assert chart.summary == "loss of 2 nodes: lowest -1, highest 3; last: node 0 3, node 1 -1."


def test_values_that_are_not_finite_and_long_pauses_are_gaps():
    steps = [rank_series(0, [1, 2, 3, 4], [1.0, None, 2.0, 3.0])]
    chart = line_chart(LOSS, steps, Window(1, 4))
    assert chart is not None and len(chart.lines[0].segments) == 2
    times = [rank_series(0, [0, 10, 20, 500, 510], [1.0] * 5)]
    for breaks, parts in ((True, 2), (False, 1)):
        chart = line_chart(Kind("CPU", number, 100, of_host=breaks), times, Window(0, 510))
        assert chart is not None and len(chart.lines[0].segments) == parts


def test_the_marked_moment_has_the_last_value_before_it():
    series = [rank_series(0, [0, 10, 20], [1.0, 2.0, 3.0])]
    chart = line_chart(LOSS, series, Window(0, 20), at=15)
    assert chart is not None
    assert (chart.lines[0].marked, chart.mark) == ("2", LEFT + (RIGHT - LEFT) * 0.75)
    beside = line_chart(LOSS, series, Window(0, 20), at=25)
    assert beside is not None and (beside.mark, beside.lines[0].marked) == (None, "")


def test_there_is_no_chart_without_a_value():
    assert line_chart(LOSS, [rank_series(0, [1], [None])], Window(0, 1)) is None
    assert window_of([rank_series(0, [], [])]) is None


def test_every_number_of_an_axis_fits_beside_its_chart():
    shown = [axis_number(value) for value in (0.0, 0.000105, 0.0079268, -0.0000123, 8.227, 123456)]
    assert shown == ["0", "1.05e-4", "0.00793", "-1.23e-5", "8.23", "1.23e+05"]
    assert max(len(text) for text in shown) <= 8


def test_a_part_of_a_series_has_the_points_of_its_window_only():
    series = rank_series(3, [0, 10, 20, 30], [1.0, None, 3.0, 4.0])
    assert within(series, Window(10, 20)) == rank_series(3, [10, 20], [None, 3.0])
