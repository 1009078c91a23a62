"""Tasks: functions that run in other processes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from monarch_client.context import JobContext, RuntimeEnv, TaskOptions
from monarch_client.context.errors import TaskCancelledError, TaskError

pytestmark = pytest.mark.feature("S4.1")


def test_a_task_returns_its_value_and_takes_positions_and_names(context: JobContext) -> None:
    def describe(first, second, *, end="."):
        return f"{first} {second}{end}"

    assert context.get(context.create_task(lambda a, b: a + b, (2, 3))) == 5
    assert context.get(context.create_task(describe, ("a", "b"))) == "a b."
    assert context.get(context.create_task(describe, ("a",), {"second": 1, "end": "!"})) == "a 1!"
    assert context.get(context.create_task(lambda: 12, options=None)) == 12


def test_values_come_in_the_order_of_their_references(context: JobContext) -> None:
    squares = [context.create_task(lambda n: n * n, (n,)) for n in range(200)]
    assert context.get(squares) == [n * n for n in range(200)]


def test_a_task_runs_in_another_process_which_never_imported_monarch(context: JobContext) -> None:
    def look():
        import os
        import sys

        return os.getpid(), [name for name in sys.modules if name.split(".")[0] == "monarch"]

    pid, modules = context.get(context.create_task(look))
    assert pid != os.getpid()
    assert modules == []


def test_plain_values_pass_through_get(context: JobContext) -> None:
    ref = context.create_task(lambda: 1)
    assert context.get(42) == 42
    assert context.get("hello") == "hello"
    assert context.get([ref, 2, ref]) == [1, 2, 1]
    assert context.get([]) == []


def test_a_value_can_be_stored_and_read_many_times(context: JobContext) -> None:
    ref = context.put({"key": [1, 2, 3]})
    assert [context.get(ref) for _ in range(3)] == [{"key": [1, 2, 3]}] * 3


def test_a_large_value_arrives_whole(context: JobContext) -> None:
    text = "x" * 3_000_000
    assert context.get(context.create_task(lambda text: text[::-1], (text,))) == text
    assert context.get(context.put(text)) == text


def test_arguments_are_pickled_when_the_task_is_made(context: JobContext) -> None:
    numbers = [1, 2]
    first = context.create_task(sum, (numbers,))
    numbers.append(100)
    assert context.get(first) == 3


def test_references_among_the_arguments_are_replaced_by_their_values(context: JobContext) -> None:
    stored = context.put(10)
    computed = context.create_task(lambda n: n + 1, (stored,))
    total = context.create_task(lambda a, b, c: a + b + c, (stored, computed), {"c": computed})
    assert context.get(total) == 32


def test_references_inside_other_values_stay_references(context: JobContext) -> None:
    def read(refs):
        from monarch_client.context import get_job_context

        return get_job_context().get(refs["inner"])

    inner = context.put("found")
    assert context.get(context.create_task(read, ({"inner": inner},))) == "found"


def test_the_error_of_a_task_keeps_its_type_and_its_traceback(context: JobContext) -> None:
    def fail():
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing") as caught:
        context.get(context.create_task(fail))
    text = str(caught.value.__cause__)
    assert "in fail" in text
    assert "in process" in text
    assert "monarch_client/context" not in text


def test_the_error_of_an_argument_is_that_of_the_task(context: JobContext) -> None:
    failed = context.create_task(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        context.get(context.create_task(lambda n: n, (failed,)))


def test_an_error_that_cannot_be_pickled_is_reported_with_its_text(context: JobContext) -> None:
    def fail():
        class StubbornError(Exception):
            def __init__(self, one, two):
                super().__init__(f"{one} and {two}")

        raise StubbornError("this", "that")

    with pytest.raises(TaskError, match="StubbornError: this and that"):
        context.get(context.create_task(fail))


def test_an_exit_in_a_task_does_not_end_the_driver(context: JobContext) -> None:
    with pytest.raises(TaskError, match="SystemExit: 3"):
        context.get(context.create_task(lambda: sys.exit(3)))


def test_a_result_that_cannot_be_pickled_is_an_error(context: JobContext) -> None:
    with pytest.raises(TypeError, match="pickle"):
        context.get(context.create_task(threading.Lock))


def test_variables_are_set_for_the_task_alone(context: JobContext) -> None:
    def read():
        import os

        return os.environ.get("OF_THE_TASK")

    options = TaskOptions(name="reads", runtime_env=RuntimeEnv(env={"OF_THE_TASK": "yes"}))
    assert context.get(context.create_task(read, options=options)) == "yes"
    assert set(context.get([context.create_task(read) for _ in range(8)])) == {None}


def test_max_calls_of_one_gives_each_call_a_fresh_process(context: JobContext) -> None:
    def count(calls=[]):  # noqa: B006 - it would be kept by a process
        calls.append(1)
        return len(calls)

    options = TaskOptions(max_calls=1)
    refs = [context.create_task(count, options=options) for _ in range(3)]
    assert context.get(refs) == [1, 1, 1]


def test_cancelling_a_running_task_interrupts_it(context: JobContext, tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)

    def run():
        import time

        fifo.write_text("running")
        time.sleep(600)

    ref = context.create_task(run)
    assert fifo.read_text() == "running"
    context.cancel(ref)
    with pytest.raises(TaskCancelledError, match="run was cancelled"):
        context.get(ref)
    # Its CPU is free again.
    options = TaskOptions(resources={"CPU": 4})
    assert context.get(context.create_task(lambda: 1, options=options)) == 1


def test_cancelling_a_queued_task_means_that_it_never_runs(
    context: JobContext, tmp_path: Path
) -> None:
    fifo, mark = tmp_path / "go", tmp_path / "ran"
    os.mkfifo(fifo)
    options = TaskOptions(resources={"CPU": 4})
    blocks = context.create_task(fifo.read_text, options=options)
    queued = context.create_task(mark.touch, options=options)
    context.cancel(queued)
    with pytest.raises(TaskCancelledError):
        context.get(queued)
    fifo.write_text("go")
    assert context.get(blocks) == "go"
    assert context.get(context.create_task(mark.exists, options=options)) is False


def test_cancelling_a_task_that_has_ended_changes_nothing(context: JobContext) -> None:
    ref = context.create_task(lambda: 1)
    assert context.get(ref) == 1
    context.cancel(ref)
    assert context.get(ref) == 1
