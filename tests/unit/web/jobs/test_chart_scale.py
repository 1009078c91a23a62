"""The scale of a chart's values, and the smoothing of its lines."""

from __future__ import annotations

import pytest

from jobs.web.jobs.chart_scale import scale_of, smoothed
from jobs.web.jobs.charts import BOTTOM, TOP
from jobs.web.jobs.line_charts import Kind, Style, Window, line_chart, number, rank_series


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_scale():
    scale = scale_of([0.001, 0.1, 10.0], is_log=True)
    low, middle, high = (scale.y(value) for value in (0.001, 0.1, 10.0))
    assert low - middle == pytest.approx(middle - high, abs=0.2)
    rows = scale.rows(number)
    assert [row.at for row in rows] == [BOTTOM, (TOP + BOTTOM) / 2, TOP]
    assert rows[1].label == "0.1"


@pytest.mark.parametrize("values", [[0.0, 1.0], [-1.0, 1.0]])
def test_values_without_a_logarithm_have_a_linear_scale(values):
    assert scale_of(values, is_log=True) == scale_of(values)


def test_one_value_or_the_least_possible_one_has_a_logarithmic_scale():
    for values in ([2.0], [5e-324], [1e300], [5e-324, 1e300]):
        scale = scale_of(values, is_log=True)
        assert scale.is_log and all(TOP < scale.y(value) <= BOTTOM for value in values)
        assert len(scale.rows(number)) == 3
    assert scale_of([5e-324], is_log=True).y(smoothed([5e-324, 5e-324], 0.9)[-1] or 0) == BOTTOM


def test_smoothing_averages_with_earlier_values_and_leaves_gaps():
    assert smoothed([4.0, 2.0], 0.0) == [4.0, 2.0]
    first, second, gap, last = smoothed([4.0, 1.0, None, 1.0], 0.5)
    assert first == 4.0  # not drawn toward zero
    assert second == pytest.approx(2.0)
    assert gap is None
    assert last is not None and second is not None and 1 < last < second


def test_a_smoothed_line_keeps_its_values_as_a_faint_line_and_in_its_summary():
    series = [rank_series(0, [0, 1, 2], [1.0, 9.0, 1.0])]
    rough = line_chart(Kind("loss", number), series, Window(0, 2))
    smooth = line_chart(Kind("loss", number), series, Window(0, 2), None, Style(smoothing=0.9))
    assert rough is not None and smooth is not None
    assert rough.lines[0].faint == []
    assert smooth.lines[0].faint == rough.lines[0].segments != smooth.lines[0].segments
    assert smooth.summary == rough.summary


def test_shares_and_values_of_hosts_keep_their_linear_scale():
    series = [rank_series(0, [0, 1], [1.0, 50.0])]
    for kind, is_log in (
        (Kind("loss", number), True),
        (Kind("GPU use", number, 100), False),
        (Kind("Network in", number, of_host=True), False),
    ):
        chart = line_chart(kind, series, Window(0, 1), None, Style(is_log=True))
        assert chart is not None and chart.is_log == is_log
