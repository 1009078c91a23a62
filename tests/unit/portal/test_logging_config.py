"""The portal's own log lines."""

from __future__ import annotations

import json
import logging
import sys
import time

import pytest

from monarch_portal.logging_config import JsonFormatter


def record(level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "jobs.x", "levelno": level, "msg": "it is %s"} | extra)
    made.levelname = logging.getLevelName(level)
    made.args = ("done",)
    return made


def test_a_line_is_one_json_object_with_the_calls_extras():
    line = json.loads(JsonFormatter().format(record(action="job_moved", job=42)))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "jobs.x",
        "message": "it is done",
        "action": "job_moved",
        "job": 42,
    }


def test_what_json_can_not_hold_is_shown_as_its_repr():
    assert json.loads(JsonFormatter().format(record(thing={1})))["thing"] == "{1}"


def test_a_request_with_its_headers_never_gets_into_the_log():
    assert "request" not in json.loads(JsonFormatter().format(record(request="Authorization")))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Forbidden: /sign-in/once/4mBz-_9x/", "Forbidden: /sign-in/once/***/"),
        (
            "Not Found: /base//Sign-In/Once//4mBz?next=/rl",
            "Not Found: /base//Sign-In/Once//***?next=/rl",
        ),
        ("token mpt_0123abc, mpj_12_ab and mpa_ff", "token mpt_***, mpj_*** and mpa_***"),
        ("{'Authorization': 'Bearer abc.def'}", "{'Authorization': 'Bearer ***'}"),
        ("redis://:word@host:6379/0", "redis://:***@host:6379/0"),
        ("postgresql://portal:word@127.0.0.1/db", "postgresql://portal:***@127.0.0.1/db"),
        ("http://127.0.0.1:8000/rl/jobs/1?next=a@b", "http://127.0.0.1:8000/rl/jobs/1?next=a@b"),
        ("http://[::1]:8000/rl/jobs/1?next=a@b", "http://[::1]:8000/rl/jobs/1?next=a@b"),
        ("redis://:pa/s@h:6379 s://u:1@2/3@h/x", "redis://:***@h:6379 s://u:***@h/x"),
        ("headers\nmpa_ff\n\tBearer abc", "headers\nmpa_***\n\tBearer ***"),
        (repr("a\nmpa_ff\nBearer abc"), repr("a\nmpa_***\nBearer ***")),
        ("next=%2Fsign-in%2Fonce%2FabZ&a=%0Ampt_ff", "next=%2Fsign-in%2Fonce%2F***&a=%0Ampt_***"),
        ("attempt_id=3 comp_a", "attempt_id=3 comp_a"),
    ],
)
def test_secrets_are_removed_from_every_line(line: str, shown: str):
    made = record()
    made.msg, made.args = "%s", (line,)
    made.exc_info = (ValueError, ValueError(line), None)
    made.lines, made.by_key = [line], {line: (line,)}
    written = json.loads(JsonFormatter().format(made))
    assert written["message"] == shown
    assert shown in written["exception"]
    assert (written["lines"], written["by_key"]) == ([shown], {shown: [shown]})


def test_an_error_shows_its_traceback_and_a_warning_its_last_line():
    try:
        raise ValueError("broken")
    except ValueError:
        caught = sys.exc_info()
    error = json.loads(JsonFormatter().format(record(logging.ERROR, exc_info=caught)))
    warning = json.loads(JsonFormatter().format(record(logging.WARNING, exc_info=caught)))
    assert error["exception"].startswith("Traceback")
    assert warning["exception"] == "ValueError: broken"


def test_the_time_to_look_for_passwords_is_linear():
    made = record()
    made.msg, made.args = "a://a:" * 200_000 + " " + "a://a:1/" * 100_000 + "@", ()
    begun = time.process_time()
    JsonFormatter().format(made)
    assert time.process_time() - begun < 5.0
