"""Tasks that make tasks, through the context of their closure or `get_job_context`."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from monarch_client.context import (
    JobContext,
    ObjectRef,
    TaskOptions,
    clear_job_context,
    get_job_context,
    set_job_context,
)
from monarch_client.context.errors import GetTimeoutError, InfeasibleError, TaskCancelledError
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.7")


def test_the_current_context_is_what_was_set(context: JobContext) -> None:
    clear_job_context()
    with pytest.raises(RuntimeError, match="set_job_context"):
        get_job_context()
    set_job_context(context)
    assert get_job_context() is context
    clear_job_context()


def test_a_task_makes_tasks_through_the_context_in_its_closure(context: JobContext) -> None:
    def outer(n):
        return context.get(context.create_task(lambda n: n + 1, (n,)))

    assert context.get(context.create_task(outer, (41,))) == 42


def test_recursion_deeper_than_there_are_cpus_ends(context: JobContext) -> None:
    def depth(n):
        from monarch_client.context import get_job_context

        own = get_job_context()
        return 1 if n == 0 else 1 + own.get(own.create_task(depth, (n - 1,)))

    assert context.get(context.create_task(depth, (10,)), timeout=60) == 11


def test_waiting_tasks_give_their_cpus_back(context: JobContext) -> None:
    def outer(n):
        from monarch_client.context import get_job_context

        own = get_job_context()
        ready, _ = own.wait([own.create_task(lambda n: n, (n,))])
        return own.get(ready)[0]

    refs = [context.create_task(outer, (n,)) for n in range(20)]
    assert context.get(refs, timeout=60) == list(range(20))


def test_a_task_uses_everything_that_a_driver_uses(context: JobContext) -> None:
    def use():
        own = get_job_context()

        class Counter:
            n = 0

            def size(self):
                self.n += 1
                return self.n

        counter = own.create_actor(Counter)
        failed = own.create_task(lambda: 1 / 0)
        never = own.create_task(lambda: __import__("time").sleep(600))
        seen = [own.get(own.put("stored")), own.get([counter.size(), counter.size()])]
        try:
            own.get(failed)
        except ZeroDivisionError as error:
            seen.append(type(error).__name__)
        try:
            own.get(never, timeout=0.05)
        except GetTimeoutError:
            own.cancel(never)
        try:
            own.create_task(int, options=TaskOptions(resources={"CPU": 1000}))
        except InfeasibleError as error:
            seen.append(str(error)[:8])
        return seen

    seen = context.get(context.create_task(use), timeout=60)
    assert seen == ["stored", [1, 2], "ZeroDivisionError", "1000 CPU"]


def test_references_survive_the_task_that_returns_them(context: JobContext) -> None:
    def make():
        own = get_job_context()
        return [own.put("a"), own.create_task(lambda: "b")]

    assert context.get(context.get(context.create_task(make))) == ["a", "b"]


def test_threads_of_a_task_use_its_context(context: JobContext) -> None:
    def use():
        from concurrent.futures import ThreadPoolExecutor

        own = get_job_context()
        with ThreadPoolExecutor(8) as pool:
            return sorted(pool.map(lambda n: own.get(own.create_task(abs, (n,))), range(-8, 0)))

    assert context.get(context.create_task(use), timeout=60) == list(range(1, 9))


@pytest.mark.parametrize("recursive", [True, False])
def test_a_cancel_ends_what_the_task_has_called_as_in_ray(
    context: JobContext, tmp_path: Path, recursive: bool
) -> None:
    fifo, made = tmp_path / "started", tmp_path / "made"
    for each in (fifo, made):
        os.mkfifo(each)

    class Waits:
        async def wait(self):
            await asyncio.sleep(600)

    def leaf():
        fifo.write_text("leaf")
        time.sleep(600)

    def branch():
        own = get_job_context()
        own.get(own.create_task(leaf))

    def root(actor):
        own = get_job_context()
        calls = [own.create_task(branch), actor.wait()]
        kept = own.put(calls)
        made.write_text(kept.id.hex())
        own.get(calls)

    actor = context.create_actor(Waits)
    call = context.create_task(root, (actor,))
    kept = bytes.fromhex(made.read_text())
    context.keep(kept)
    children = context.get(ObjectRef(kept, context))
    fifo.read_text()
    context.cancel(call, recursive=recursive)
    with pytest.raises(TaskCancelledError):
        context.get(call, timeout=60)
    running = context.wait(children, num_returns=2, timeout=60 if recursive else 0)[1]
    assert running == ([] if recursive else children)
    for each in running:
        context.cancel(each)
    assert eventually(lambda: not context._driver.objects.pending())
