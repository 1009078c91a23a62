"""The arithmetic behind figures: wrong percentiles would make every other test of them moot."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench.measure import percentile, report, wall_time_of_ticks


@pytest.mark.parametrize(("percent", "expected"), [(50, 10), (95, 19), (100, 20), (1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: int) -> None:
    assert percentile(list(range(20, 0, -1)), percent) == expected


def test_a_figure_is_one_line_of_json_with_its_ratio_to_the_peer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report("latency_s", 1.5, "s", peer="other 1.0", peer_value=6.0)
    line = json.loads(capsys.readouterr().out)
    assert set(line) == {"figure", "value", "unit", "peer", "peer_value", "ratio", "machine"}
    assert line["ratio"] == 0.25


def test_a_figure_without_a_peer_has_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    report("memory_mb", 12.0, "MB")
    line = json.loads(capsys.readouterr().out)
    assert (line["peer"], line["peer_value"], line["ratio"]) == (None, None, None)


def test_a_figure_that_scatters_says_between_which_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report("added_s", 1.0, "s", spread=(-0.51234, 2.0))
    assert json.loads(capsys.readouterr().out)["spread"] == [-0.512, 2.0]


def test_ticks_since_boot_become_the_moment_a_process_started() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    started = wall_time_of_ticks(int(fields[19]), now=time.time(), since_boot=since_boot)
    assert 0 <= time.time() - started < since_boot
