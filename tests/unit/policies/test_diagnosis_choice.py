"""The choice among several lines that may explain an ending, and endings that need none."""

from __future__ import annotations

import time

import pytest

from jobs.policies.diagnosis import diagnose
from jobs.statuses import PURPOSES, StopReason
from tests.unit.policies.test_diagnosis import FAILED


@pytest.mark.parametrize("reason", sorted({*PURPOSES, StopReason.COMPLETED, StopReason.TIMEOUT}))
def test_an_ending_that_was_wished_for_needs_no_diagnosis(reason):
    assert diagnose(reason, "", ["CUDA out of memory", "Segmentation fault"]) is None


def test_credentials_are_a_cause_only_where_a_place_speaks():
    line = (
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling GetObject"
    )
    assert diagnose(StopReason.USER_CODE, FAILED, [line]) is None


def test_the_cause_goes_before_what_follows_from_it():
    lines = ["CUDA out of memory", "NCCL error: timed out", "Connection refused", "SIGABRT"]
    assert diagnose(StopReason.USER_CODE, FAILED, lines).code == "cuda_oom"


def test_the_end_of_a_rank_is_not_explained_by_what_it_did_to_others():
    others = ["RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:4"]
    own = "ValueError: shard 3 is corrupt"
    message = f"The program on rank 3 (10.0.0.4) raised {own}."
    assert diagnose(StopReason.USER_CODE, message, others, own) is None


def test_of_many_lines_the_last_is_shown_and_shortened():
    lines = ["[Errno 28] No space left on device: first", "x" * 900 + " No space left on device"]
    found = diagnose(StopReason.USER_CODE, FAILED, lines)
    assert found.evidence == f"{'x' * 300} ... {('x' * 900 + lines[1][-24:])[-300:]}"


def test_hostile_lines_take_no_time():
    lines = ["NCCL spawn libcuda.so quota " * 2000, "a" * 60_000, "CUDA " * 12_000] * 70
    begun = time.process_time()
    assert diagnose(StopReason.USER_CODE, FAILED, lines) is None
    assert time.process_time() - begun < 2.0
