"""The pauses between tries: how they grow, differ, begin anew and end."""

from __future__ import annotations

import random

import pytest

from monarch_client.runner.base import retry
from monarch_client.runner.base.retry import Retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Provide the time, and pauses of full length."""
    now = [100.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(random, "uniform", lambda _shortest, longest: longest)
    return now


@pytest.mark.usefixtures("clock")
def test_pauses_double_up_to_a_limit_and_begin_anew_after_a_success() -> None:
    tries = Retry(0.5, 3.0)
    assert [tries.next_pause_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert tries.next_pause_s(0.1) == 0.1
    tries.succeeded()
    assert tries.next_pause_s() == 0.5


@pytest.mark.usefixtures("clock")
def test_pauses_of_another_failure_grow_from_the_limit_of_the_one_before() -> None:
    tries = Retry(0.5, 30.0)
    assert [tries.next_pause_s(2.0) for _ in range(9)][2:] == [2.0] * 7
    assert [tries.next_pause_s() for _ in range(6)] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert tries.next_pause_s(2.0) == 2.0


def test_a_series_is_over_when_the_next_try_would_be_too_late(clock: list[float]) -> None:
    tries = Retry(1.0, 4.0, limit_s=5.0)
    while not tries.is_over:
        clock[0] += tries.next_pause_s()
    assert clock[0] == 103.0


def test_many_that_fail_together_do_not_try_again_together() -> None:
    pauses = {Retry(1.0, 4.0).next_pause_s() for _ in range(100)}
    assert len(pauses) > 50
    assert min(pauses) >= 0.75
    assert max(pauses) <= 1.0
