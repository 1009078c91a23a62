"""Values above 64 kB: in shared memory, read without a copy, freed with their last reference."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from monarch_client.context import JobContext, TaskOptions
from monarch_client.context.objects import StoreFullError, StoreUsage
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.feature("S4.6")]
MB = 1_000_000


@pytest.fixture
def context(tmp_path: Path) -> Iterator[JobContext]:
    """Provide a context whose store has 40 MB."""
    with JobContext(
        resources={"CPU": 3}, object_store_bytes=40 * MB, spill_directory=tmp_path
    ) as made:
        yield made


def usage(context: JobContext) -> StoreUsage:
    context._driver.loop.wake()
    context._driver.stored.client.flush()
    return context._driver.stored.store.usage()


def rows(count: int = 2 * MB) -> np.ndarray:
    return np.arange(count, dtype=np.uint8)


def is_empty(context: JobContext) -> bool:
    now = usage(context)
    return (now.used, now.spilled, now.objects) == (0, 0, 0)


def test_large_arguments_results_and_puts_pass_through_the_store(context: JobContext) -> None:
    def double(first, second, *, third):
        assert not (first.flags.writeable or second.flags.writeable)
        return {"sum": first + second + third["rows"], "small": 1}

    stored = context.put(rows())
    result = context.create_task(double, (rows(), stored), {"third": {"rows": rows()}})
    value = context.get(result)
    assert value["small"] == 1 and (value["sum"] == rows() * 3).all()
    # The arguments, an object of their own, end with the call.
    assert eventually(lambda: usage(context).objects == 2)
    del stored, result
    assert eventually(lambda: usage(context).objects == 1)  # what `value` has pinned
    assert (value["sum"] == rows() * 3).all()
    del value
    assert eventually(lambda: is_empty(context))


def test_actors_and_nested_tasks_use_the_store(context: JobContext) -> None:
    class Holder:
        def __init__(self, rows):
            self.rows = rows

        def replace(self, rows):
            before, self.rows = self.rows, rows
            return before

    def nested(context, rows):
        inner = context.create_task(lambda rows: rows[::-1], (rows,))
        kept = context.put(context.get(inner))
        return context.get(kept), kept

    holder = context.create_actor(Holder, (rows(),))
    assert (context.get(holder.replace(rows(3 * MB))) == rows()).all()
    assert (context.get(holder.replace(None)) == rows(3 * MB)).all()
    reversed_rows, kept = context.get(context.create_task(nested, (context, rows())))
    assert (reversed_rows == rows()[::-1]).all()
    assert (context.get(kept) == reversed_rows).all()
    del reversed_rows, kept, holder
    assert eventually(lambda: is_empty(context))


def test_small_arrays_are_read_only_like_large_ones(context: JobContext) -> None:
    small = context.get(context.create_task(lambda rows: rows, (rows(10),)))
    assert small.tolist() == list(range(10)) and not small.flags.writeable
    assert is_empty(context)


def test_wait_moves_nothing(context: JobContext) -> None:
    refs = [context.create_task(lambda: np.zeros(8 * MB, np.uint8)) for _ in range(8)]
    ready, _ = context.wait(refs, num_returns=8)
    assert len(ready) == 8
    now = usage(context)
    assert now.in_use == 0 and now.spilled > 20 * MB


def test_a_task_whose_result_has_no_room_raises_store_full(context: JobContext) -> None:
    with pytest.raises(StoreFullError, match="no room for 50 MB: its limit is 40 MB"):
        context.get(context.create_task(lambda: np.zeros(50 * MB, np.uint8)))
    assert is_empty(context)


def test_a_killed_task_leaves_nothing_in_the_store(context: JobContext) -> None:
    """Kill a process that has read an argument, and stored a value that it did not report."""

    def die(rows, context):
        context.store(rows + 1)
        os.kill(os.getpid(), signal.SIGKILL)

    ref = context.create_task(die, (rows(), context), options=TaskOptions(max_retries=0))
    with pytest.raises(Exception, match="SIGKILL"):
        context.get(ref)
    assert eventually(lambda: is_empty(context))


def test_the_late_result_of_a_cancelled_task_is_deleted(context: JobContext) -> None:
    def slow(folder):
        import time

        Path(folder, "started").touch()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            return rows()

    folder = context._driver.stored.store._spill.directory
    ref = context.create_task(slow, (str(folder),))
    assert eventually((folder / "started").exists)
    context.cancel(ref)
    assert context.get(context.create_task(lambda: 1)) == 1
    assert eventually(lambda: is_empty(context))


def test_values_outlive_the_context() -> None:
    with JobContext(resources={"CPU": 1}) as context:
        value = context.get(context.create_task(rows))
    assert (value == rows()).all()
