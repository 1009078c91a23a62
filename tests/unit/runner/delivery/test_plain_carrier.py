"""The readable log of a runner without a portal."""

from __future__ import annotations

import pytest

from monarch_client.runner.delivery.plain_carrier import line_of

WORKER = {"kind": "worker", "rank": 1, "address": "10.0.0.2:22222", "python": "", "detail": ""}


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ({"kind": "line", "rank": 1, "stream": "stdout", "text": "hello"}, "rank 1| hello"),
        ({"kind": "line", "rank": 0, "stream": "setup", "text": "pip"}, "rank 0 setup| pip"),
        ({"kind": "line", "rank": 0, "stream": "portal", "text": "x"}, "mportal: rank 0: x"),
        (
            {**WORKER, "status": "READY", "python": "3.11"},
            "mportal: rank 1 is READY at 10.0.0.2:22222, Python 3.11",
        ),
        (
            {**WORKER, "rank": 0, "about": 1, "status": "LOST", "detail": "no\nword"},
            "mportal: rank 1 is LOST at 10.0.0.2:22222: no word",
        ),
        (
            {"kind": "stage", "rank": 0, "stage": "setup", "phase": "begin"},
            "mportal: setup: begins",
        ),
        ({"kind": "stage", "rank": 0, "stage": "setup", "phase": "end"}, ""),
        ({"kind": "exit", "rank": 0, "exit_code": 3}, ""),
        (
            {"kind": "end", "rank": 0, "reason": "SETUP", "message": "No.", "hint": "Try."},
            "mportal: the end (SETUP): No. Try.",
        ),
    ],
)
def test_each_frame_is_one_line_for_people_or_none(frame: dict[str, object], line: str) -> None:
    assert line_of(frame) == line
