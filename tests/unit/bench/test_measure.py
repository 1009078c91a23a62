"""The arithmetic behind figures: wrong percentiles would make every other test of them moot."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.machine_factor import Speeds, reference_speeds
from bench.measure import NoPeer, Peer, figures, percentile, report, wall_time_of_ticks

PEER = Peer("other 1.0", 6.0)


class Lines:
    """Return the lines that a run has printed at its end."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.speeds = iter([reference_speeds(), reference_speeds()])
        self.found: list[dict[str, Any]] = []

    @contextmanager
    def of_a_run(self) -> Iterator[None]:
        try:
            with figures(lambda: next(self.speeds)):
                yield
        finally:
            self.found = [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    return Lines(capsys)


@pytest.mark.parametrize(("percent", "expected"), [(50, 10), (95, 19), (100, 20), (1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: int) -> None:
    assert percentile(list(range(20, 0, -1)), percent) == expected


def test_a_figure_is_one_line_of_json_with_its_ratio_to_the_peer(lines: Lines) -> None:
    with lines.of_a_run():
        report("latency_s", 1.5, "s", peer=PEER)
    [line] = lines.found
    figure = {"figure", "value", "unit", "peer", "peer_value", "ratio"}
    assert set(line) == figure | {"machine", "machine_factor", "machine_parts", "machine_unsteady"}
    assert (line["peer"], line["peer_value"], line["ratio"]) == ("other 1.0", 6.0, 0.25)


def test_every_line_of_a_run_has_the_factor_of_its_start_and_its_end(lines: Lines) -> None:
    now = reference_speeds()
    lines.speeds = iter([now, Speeds(now.python * 2, now.memcpy * 2, now.postgresql * 2)])
    with lines.of_a_run():
        report("first_s", 1.0, "s", peer=PEER)
        report("second_s", 2.0, "s", peer=NoPeer("nothing else counts"))
    assert [line["figure"] for line in lines.found] == ["first_s", "second_s"]
    assert [line["machine_factor"] for line in lines.found] == [1.5, 1.5]
    assert all(line["machine_unsteady"] for line in lines.found)


def test_a_run_that_fails_prints_the_figures_that_it_has(lines: Lines) -> None:
    with pytest.raises(OSError, match="broken"), lines.of_a_run():
        report("first_s", 1.0, "s", peer=PEER)
        raise OSError("broken")
    assert [line["machine_factor"] for line in lines.found] == [1]


def test_a_figure_outside_a_run_is_refused_as_it_would_have_no_factor() -> None:
    with pytest.raises(RuntimeError, match="latency_s is reported outside"):
        report("latency_s", 1.5, "s", peer=PEER)


def test_a_figure_without_a_peer_is_refused_unless_it_says_why_none_is_possible(
    lines: Lines,
) -> None:
    with lines.of_a_run():
        with pytest.raises(TypeError, match="peer"):
            report("memory_mb", 12.0, "MB")  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="why none is possible"):
            NoPeer("")
        report("memory_mb", 12.0, "MB", peer=NoPeer("nothing bare has memory"))
    [line] = lines.found
    assert (line["peer"], line["peer_value"], line["ratio"]) == (None, None, None)
    assert line["no_peer"] == "nothing bare has memory"


def test_a_figure_that_scatters_says_between_which_values(lines: Lines) -> None:
    with lines.of_a_run():
        report("added_s", 1.0, "s", peer=PEER, spread=(-0.51234, 2.00001))
    assert lines.found[0]["spread"] == [-0.5123, 2.0]


def test_a_peer_of_a_fraction_of_a_millisecond_is_not_rounded_away(lines: Lines) -> None:
    with lines.of_a_run():
        report("step_s", 0.5, "s", peer=Peer("bare", 0.00012345))
    assert lines.found[0]["peer_value"] == pytest.approx(0.00012345, rel=1e-3)


def test_ticks_since_boot_become_the_moment_a_process_started() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    started = wall_time_of_ticks(int(fields[19]), now=time.time(), since_boot=since_boot)
    assert 0 <= time.time() - started < since_boot
