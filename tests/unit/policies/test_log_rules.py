"""The log policies of a job: those of all jobs, its own, and its own that replace others."""

from __future__ import annotations

import re

import pytest
import re2

from jobs.policies.known_failures import FAILURES
from jobs.policies.log_rules import (
    KNOWN_RULES,
    MOST_TOLD,
    any_of,
    rules_of,
    still_open,
)
from jobs.statuses import LogAction
from monarch_client.spec import LogPolicy


def rules(*own: dict) -> dict:
    return {rule.name: rule for rule in rules_of(map(LogPolicy.from_dict, own))}


def test_every_job_has_those_of_known_failures_and_their_patterns_are_those():
    assert set(rules()) == {"gpu_hardware", "cuda_oom", "disk_full", "nccl_timeout"}
    assert rules()["gpu_hardware"].actions == {LogAction.ANNOTATE, LogAction.EXCLUDE_NODE}
    assert rules()["cuda_oom"].actions == {LogAction.ANNOTATE, LogAction.NO_RETRY}
    for failure in FAILURES:
        if failure.code in KNOWN_RULES:
            assert failure.pattern.pattern in KNOWN_RULES[failure.code].pattern


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpu_hardware", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
        (
            "gpu_hardware",
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=912, GPU has fallen off the bus.",
        ),
        ("gpu_hardware", "kernel: NVRM: Xid (PCI:0000:1a:00): 48, DBE (double bit error)"),
        ("cuda_oom", "torch.OutOfMemoryError: cuda out of memory. Tried to allocate 2 GiB"),
        ("nccl_timeout", "[rank3]: Watchdog caught collective operation timeout: WorkNCCL"),
        ("disk_full", "OSError: [Errno 28] No space left on device: '/ckpt'"),
    ],
)
def test_both_engines_find_known_failures_by_the_same_pattern(name, line):
    assert re2.search(KNOWN_RULES[name].pattern, line)
    assert re.search(KNOWN_RULES[name].pattern, line)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=912, MMU Fault",  # the program's own
        "    Double Bit ECC                : 0",
        "        DRAM Uncorrectable        : 0",
        "NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.",
        "ECC mode: enabled",
    ],
)
def test_a_line_that_only_speaks_of_such_things_is_none(line):
    combined = any_of([rule.pattern for rule in KNOWN_RULES.values()])
    assert not re2.search(combined, line)


def test_those_of_every_job_are_looked_for_in_whole_pieces_of_log():
    # A pattern with the begin of a line must be tried on each line alone, forty times as slowly.
    assert "^" not in any_of([rule.pattern for rule in KNOWN_RULES.values()])


def test_one_of_its_own_comes_beside_them_or_in_the_place_of_one():
    own = {"name": "loss_is_nan", "pattern": "loss is nan", "actions": ["fail"]}
    mild = {"name": "cuda_oom", "actions": ["annotate"]}
    other = {"name": "disk_full", "pattern": "quota", "actions": ["fail"]}
    found = rules(own, mild, other)
    assert found["loss_is_nan"].actions == {LogAction.FAIL}
    assert found["cuda_oom"].pattern == KNOWN_RULES["cuda_oom"].pattern
    assert found["cuda_oom"].actions == {LogAction.ANNOTATE}
    assert (found["disk_full"].pattern, found["disk_full"].title) == ("quota", "A disk is full")


def test_one_without_an_action_is_off():
    assert "cuda_oom" not in rules({"name": "cuda_oom", "actions": []})


def test_a_rule_that_was_reported_often_enough_is_looked_for_no_more():
    found = rules_of(())
    reported = {"cuda_oom": MOST_TOLD, "disk_full": MOST_TOLD - 1}
    assert {rule.name for rule in found} - {r.name for r in still_open(found, reported)} == {
        "cuda_oom"
    }
