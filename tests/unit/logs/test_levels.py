"""Lines that look like errors or warnings, on which the page and the portal agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.logs.levels import ERROR_WORDS
from jobs.logs.lines import encoded
from jobs.logs.matching import Matcher, Question

ERRORS_JS = Path(__file__).parents[3] / "jobs/static/jobs/js/log/errors.js"
ERRORS = [
    "ERROR:root:no such file",
    "ValueError: too many values",
    "Traceback (most recent call last):",
    "[E1123 10:15:00.123456 88 socket.cpp:1019] connect timed out",
    "[rank0]:[E821 17:37:29.123 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation",
    "E20260301 10:15:00.123456 88 socket.cpp:1019] lost",
    "\x1b[31mFatal\x1b[0m: out of memory",
    "torch.distributed.DistBackendError: NCCL",
    "::error file=train.py::lost",
]
WARNINGS = [
    "2026-03-01 12:00:00 WARNING slow step",
    "UserWarning: deprecated",
    "node3: NCCL WARN Call to ibv_open failed",
    "W0301 12:00:00.000001 7 fallback.cpp:3] slow",
]
OTHERS = ["step 17 loss 2.1", "terrors of the deep", "0 warned", "E1123 is a room", "rank 0 W1 ok"]


def found(level: str | None, text: str = "") -> list[str]:
    lines = [*ERRORS, *WARNINGS, *OTHERS]
    raw = "\n".join(encoded(0, "stdout", 1123_101500, line) for line in lines).encode()
    hits, _ = Matcher(Question(text, level=level)).hits(raw, 1)
    return [lines[hit.number - 1] for hit in hits]


def test_errors_are_found_by_the_words_of_loggers_tracebacks_and_glog() -> None:
    assert found("error") == ERRORS


def test_warnings_are_found_together_with_what_is_graver() -> None:
    assert found("warning") == ERRORS + WARNINGS


@pytest.mark.parametrize("text", ["o", "NCCL", "step"])
def test_words_and_a_level_narrow_each_other(text: str) -> None:
    with_words = set(found(None, text))
    assert found("warning", text) == [line for line in ERRORS + WARNINGS if line in with_words]


def test_a_level_alone_marks_the_words_that_show_it() -> None:
    raw = encoded(0, "stdout", 1000, "step 1 ValueError: x").encode()
    ((hit,), _) = Matcher(Question(level="error")).hits(raw, 1)
    assert hit.spans == [(7, 17)]


def test_a_question_with_a_level_travels_to_the_searching_process() -> None:
    question = Question("x", level="error")
    assert Question(**json.loads(json.dumps(question.to_dict()))).level == "error"


def test_the_page_takes_the_same_lines_for_errors() -> None:
    assert f"String.raw`{ERROR_WORDS}`" in ERRORS_JS.read_text()
