"""Idle GPUs: when they count as idle, and that unknown ones never do."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.policies.gpu_idle import GpuHost, GpuRule, after_sample, idle_for
from jobs.policies.limits import Limit

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATE = timedelta(seconds=150)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def host_after(*samples: tuple[float, list[float | None]], below: float = 5) -> GpuHost:
    """Return what is known after these samples, each some seconds after T0."""
    host: GpuHost | None = None
    for seconds, uses in samples:
        host = after_sample(host, at(seconds), uses, below, LATE)
    assert host is not None
    return host


def test_a_host_is_idle_since_the_first_of_the_samples_in_which_all_its_gpus_were():
    assert host_after((0, [90, 0]), (10, [0, 0]), (20, [4, 4.9]), (30, [0, 0])).idle_since == at(10)


@pytest.mark.parametrize("uses", [[5], [0, 0, 6], [100]])
def test_one_gpu_that_works_is_enough(uses):
    assert host_after((0, [0] * len(uses)), (10, uses)).idle_since is None


@pytest.mark.parametrize("uses", [[], [None], [0, None]])
def test_a_host_without_gpus_or_with_one_that_does_not_report_is_not_idle(uses):
    assert host_after((0, [0] * len(uses)), (10, uses)).idle_since is None


def test_a_gap_between_samples_says_nothing_of_the_time_between():
    assert host_after((0, [0]), (150, [0])).idle_since == at(0)
    assert host_after((0, [0]), (151, [0])).idle_since == at(151)


def hosts(*idle_since: float | None, reported_at: float = 590) -> list[GpuHost]:
    return [GpuHost(at(reported_at), None if s is None else at(s)) for s in idle_since]


def idle(found: list[GpuHost], begun_at: float = 0) -> timedelta | None:
    return idle_for(found, begun_at=at(begun_at), now=at(600), late=LATE)


def test_a_job_is_idle_for_as_long_as_the_last_of_its_hosts():
    assert idle(hosts(100, 300, 200)) == timedelta(seconds=300)


def test_what_comes_before_run_is_no_idleness():
    assert idle(hosts(100, 100), begun_at=500) == timedelta(seconds=100)


def test_a_job_with_a_busy_host_is_not_idle():
    assert idle(hosts(100, None)) is None


def test_a_host_that_has_reported_nothing_lately_may_be_busy():
    assert idle([*hosts(100), *hosts(100, reported_at=440)]) is None
    assert idle([*hosts(100), *hosts(100, reported_at=450)]) == timedelta(seconds=500)


def test_no_job_exceeds_an_administrators_minutes():
    assert GpuRule(5, 30).minutes == 30
    assert GpuRule(5, 30, Limit(10, "project rl")).minutes == 10
    assert GpuRule(5, 5, Limit(10, "project rl")).minutes == 5
