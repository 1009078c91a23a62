"""An attempt that ends in a known way keeps the diagnosis."""

from __future__ import annotations

import pytest

from jobs.actions.attempts.end_attempt import close_attempt
from jobs.ground import clock
from jobs.models import HostMetrics, JobEvent
from jobs.statuses import EVIDENCE, StopReason
from tests.frame_bytes import frame

pytestmark = pytest.mark.django_db

LIBCUDA = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
END = {"reason": "USER_CODE", "exit_code": 1, "message": "The program on rank 0 raised OSError."}


def test_a_line_of_the_log_shows_it(attempt, post):
    post(frame(1, text="begin"), frame(2, text=LIBCUDA, stream="stderr"), frame(3, text="bye"))
    post(frame(4, "end", **END))
    attempt.refresh_from_db()
    assert attempt.diagnosis["code"] == "gpu_driver_missing"
    assert attempt.diagnosis["evidence"] == LIBCUDA
    assert "`nvidia-smi`" in attempt.diagnosis["fix"]


def test_a_line_that_comes_with_the_end_shows_it_too(attempt, post):
    post(frame(1, text=LIBCUDA), frame(2, "end", **END))
    attempt.refresh_from_db()
    assert attempt.diagnosis["evidence"] == LIBCUDA


def test_the_evidence_of_a_runner_shows_it(attempt, post):
    post(frame(1, "end", **{**END, "evidence": f"Traceback\n{LIBCUDA}\n"}))
    attempt.refresh_from_db()
    assert attempt.diagnosis["evidence"] == LIBCUDA


@pytest.mark.parametrize(
    ("latest", "evidence"),
    [
        (
            {"memory_used": 62 << 30, "memory_total": 64 << 30},
            "The node of rank 1 used 97 % of its 64.0 GiB of memory ",
        ),
        ({}, "The program on rank 1 (::1) was ended by SIGKILL."),
    ],
)
def test_a_kill_comes_with_the_memory_of_its_node_if_that_was_reported(
    attempt, post, latest, evidence
):
    for rank, values in [(0, {"memory_used": 1, "memory_total": 1}), (1, latest)]:
        HostMetrics.objects.create(attempt=attempt, rank=rank, at=clock.now(), latest=values)
    message = "The program on rank 1 (::1) was ended by SIGKILL."
    close_attempt(attempt, StopReason.USER_CODE, message)
    attempt.refresh_from_db()
    assert attempt.diagnosis["code"] == "killed"
    assert attempt.diagnosis["evidence"].startswith(evidence)


def test_a_verdict_of_the_portals_is_looked_at_as_well(attempt, post):
    post(frame(1, text="begin"))
    close_attempt(attempt, StopReason.NO_CAPACITY, "ResourcesUnavailableError: none left")
    assert attempt.diagnosis["code"] == "no_capacity"


def test_what_printed_before_a_runner_died_is_looked_at(attempt):
    printed = "/usr/bin/python3: No module named 'monarch'"
    close_attempt(attempt, StopReason.BACKEND, "The runner died.", evidence=printed)
    assert (attempt.diagnosis["code"], attempt.diagnosis["evidence"]) == (
        "monarch_missing",
        printed,
    )


@pytest.mark.parametrize("reason", [StopReason.CANCELLED_BY_USER, StopReason.TIMEOUT])
def test_an_ending_that_was_wished_for_has_none(attempt, post, reason):
    post(frame(1, text=LIBCUDA))
    close_attempt(attempt, reason, "Stopped.")
    assert attempt.diagnosis == {}


@pytest.mark.parametrize(
    ("evidence", "line"),
    [
        ('Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 7\nbye', 2),
        ("one\nbye", 3),
        ("not in the log", None),
    ],
)
def test_the_evidence_of_a_runner_leads_to_its_line_of_the_log(attempt, post, evidence, line):
    post(frame(1, text="one"), frame(2, text="[rank0]: KeyError: 7"), frame(3, text="bye"))
    post(frame(4, "end", **{**END, "evidence": evidence}))
    assert JobEvent.objects.get(verb=EVIDENCE).line == line
