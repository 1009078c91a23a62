"""`wait` and `get` with time-outs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monarch_client.context import JobContext, get_job_context
from monarch_client.context.errors import GetTimeoutError

pytestmark = pytest.mark.feature("S4.2")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Make a FIFO; a task that reads it waits until the test writes to it."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_wait_for_nothing_returns_two_empty_lists(context: JobContext) -> None:
    assert context.wait([]) == ([], [])


def test_wait_returns_exactly_as_many_as_requested_in_order(context: JobContext) -> None:
    refs = [context.create_task(lambda n=n: n) for n in range(5)]
    context.get(refs)
    done, others = context.wait(refs, num_returns=2)
    assert [id(each) for each in done] == [id(each) for each in refs[:2]]
    assert [id(each) for each in others] == [id(each) for each in refs[2:]]


def test_wait_returns_what_is_ready_when_the_time_is_over(context: JobContext, gate: Path) -> None:
    slow = context.create_task(gate.read_text)
    fast = context.create_task(lambda: "fast")
    done, others = context.wait([slow, fast], num_returns=2, timeout=0.5)
    assert (done, others) == ([fast], [slow])
    assert context.wait([slow], timeout=0) == ([], [slow])
    gate.write_text("slow")
    assert context.wait([slow, fast], num_returns=2) == ([slow, fast], [])
    assert context.get(slow) == "slow"


def test_wait_counts_a_failed_task_as_ready(context: JobContext) -> None:
    failed = context.create_task(lambda: 1 / 0)
    assert context.wait([failed]) == ([failed], [])


def test_a_loop_over_wait_sees_each_reference_once(context: JobContext) -> None:
    left = [context.create_task(lambda n=n: n) for n in range(100)]
    seen = []
    while left:
        done, left = context.wait(left)
        seen += context.get(done)
    assert sorted(seen) == list(range(100))


def test_wait_refuses_what_is_no_reference_or_comes_twice(context: JobContext) -> None:
    ref = context.put(1)
    with pytest.raises(TypeError, match="takes references"):
        context.wait([1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="each reference once"):
        context.wait([ref, ref])
    with pytest.raises(ValueError, match="negative"):
        context.wait([ref], num_returns=-1)


def test_get_ends_with_its_time_out_and_the_task_goes_on(context: JobContext, gate: Path) -> None:
    ref = context.create_task(gate.read_text)
    with pytest.raises(GetTimeoutError, match=r"1 value was not ready within 0\.05 s"):
        context.get(ref, timeout=0.05)
    with pytest.raises(GetTimeoutError, match="2 values were not ready within 0 s"):
        context.get([ref, context.create_task(len, (ref,))], timeout=0)
    with pytest.raises(TimeoutError):
        context.get([context.put(1), ref], timeout=0)
    gate.write_text("late")
    assert context.get(ref, timeout=60) == "late"


def test_a_time_out_may_be_endless_but_is_a_number(context: JobContext) -> None:
    def get_forever(ref):
        own = get_job_context()
        return own.get(ref[0], timeout=float("inf"))

    ref = context.put(1)
    assert context.get(ref, timeout=float("inf")) == 1
    assert context.get(context.create_task(abs, (2,)), timeout=float("inf")) == 2
    assert context.get(context.create_task(get_forever, ([ref],)), timeout=60) == 1
    with pytest.raises(ValueError, match="number of seconds"):
        context.get(ref, timeout=float("nan"))
    with pytest.raises(ValueError, match="number of seconds"):
        context.wait([ref], timeout=float("nan"))


def test_a_time_out_in_a_task_is_that_of_its_own_request(context: JobContext) -> None:
    def timeout_afterwards(ref):
        own = get_job_context()
        own.get(ref[0], timeout=30)
        return own._connection()[0].gettimeout()

    ref = context.put(1)
    assert context.get(context.create_task(timeout_afterwards, ([ref],)), timeout=60) is None


def test_get_raises_the_first_error_without_waiting_for_others(
    context: JobContext, gate: Path
) -> None:
    slow = context.create_task(gate.read_text)
    failed = context.create_task(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        context.get([slow, failed])
    gate.write_text("")
    context.get(slow)
