"""The computation of the figures of logs: the ages of lines, and the parts that run."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.logs import copying
from bench.logs.__main__ import commands
from bench.logs.follow import peer_of
from bench.logs.lines import texts
from bench.logs.plain_file import PlainFile
from bench.logs.readers import Ages, summary
from bench.logs.talk import stamped


@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
def test_every_line_is_noted_once_wherever_its_stream_is_cut(size: int) -> None:
    text = "\n".join(stamped(1_800_000_000 + number) for number in range(20)).encode()
    ages = Ages()
    for begin in range(0, len(text), size):
        ages.take(text[begin : begin + size], 1_800_000_020)
    assert [age for _, age in ages.found] == list(range(20, 0, -1))


def seen(*found: tuple[float, float]) -> Ages:
    ages = Ages()
    ages.found.extend(found)
    return ages


def test_only_lines_in_time_count_and_a_reader_without_lines_is_reported() -> None:
    before_and_after = seen((9, 70), (10, 1), (14.9, 3), (15, 80))
    found = summary([before_and_after, seen()], 10, 5)
    assert found == {"p50": 1, "p99": 3, "most": 3, "lines_per_s": 0.2, "silent": 1}


def test_a_follower_that_saw_nothing_has_no_figure() -> None:
    with pytest.raises(RuntimeError, match="no line came"):
        summary([seen()], 0, 5)


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([{"followers": 100, "lines_per_s": 1000}], "ray 1"),
        ([{"followers": 90, "lines_per_s": 1000}], "ray 1; 90 followers, no more were served"),
        ([{"followers": 100, "lines_per_s": 120}], "ray 1; 120 lines/s of 1000 reached each"),
    ],
)
def test_a_peer_that_did_less_is_named_with_what_it_did(
    rounds: list[Mapping[str, Any]], expected: str
) -> None:
    assert peer_of(100, "ray 1", rounds) == expected


def test_options_go_to_the_parts_that_are_named() -> None:
    [command] = commands(["follow", "--without-ray", "--followers", "1"])
    assert command[2:] == ["bench.logs.follow", "--without-ray", "--followers", "1"]


def test_the_part_that_needs_a_cluster_runs_only_where_it_is_named() -> None:
    modules = [command[2] for command in commands([])]
    assert modules == ["bench.logs.ingest", "bench.logs.follow", "bench.logs.reading"]
    assert [command[2] for command in commands(["follow-sky"])] == ["bench.logs.follow_sky"]


def test_a_part_that_is_misspelt_is_refused() -> None:
    with pytest.raises(ValueError, match="folow"):
        commands(["folow"])


def test_a_bare_file_answers_the_same_queries_as_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    plain = PlainFile(path)
    plain.append([f"line {number}" for number in range(100)])
    plain.append(["the needle"])
    assert path.read_text().endswith("line 99\nthe needle\n")
    requested = (
        plain.last_s(10),
        plain.jump_s(50, 10),
        plain.first_matches_s("line", 3),
        plain.all_matches_s("needle"),
    )
    assert all(seconds > 0 for seconds in requested)
    assert 0 < plain.gzip_ratio() < 1
    with pytest.raises(subprocess.CalledProcessError):
        plain.all_matches_s("no such words")


def test_rows_for_copy_are_those_of_the_lines() -> None:
    rows = copying.rows(7, list(texts(200))).decode().splitlines()
    assert [row.split("\t")[5] for row in rows] == list(texts(200))
    assert rows[1].split("\t")[:3] == ["7", "0", "2"]
    assert "\\" not in "".join(rows)
