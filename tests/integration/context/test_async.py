"""Coroutines: actors with async methods, and references that are awaited, as in Ray."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from monarch_client.context import JobContext
from monarch_client.context.errors import ActorDiedError, TaskCancelledError, TaskError
from tests.waiting import eventually

SIZE = 100_000


class Signal:
    """Ray's pattern of an actor that others wait for: its methods need the event loop."""

    def __init__(self):
        self.event = asyncio.Event()
        self.waits = 0
        self.watch = asyncio.get_running_loop().create_task(self.event.wait())

    def send(self):
        self.event.set()
        return self.waits

    async def wait(self):
        self.waits += 1
        await self.event.wait()
        return id(asyncio.get_running_loop())

    async def interrupt(self):
        raise KeyboardInterrupt

    async def never(self):
        await asyncio.sleep(600)

    async def leave(self):
        sys.exit(3)

    async def leave_later(self):
        async def leave():
            sys.exit(4)

        self.leaving = asyncio.create_task(leave())


def test_the_calls_of_an_async_actor_share_one_loop_and_wait_for_each_other(
    context: JobContext,
) -> None:
    actor = context.create_actor(Signal)
    waits = [actor.wait() for _ in range(20)]
    assert context.get(actor.send(), timeout=60) == 20
    assert len(set(context.get(waits, timeout=60))) == 1


@pytest.mark.parametrize(("method", "status"), [("leave", 3), ("leave_later", 4)])
def test_an_exit_in_a_coroutine_ends_the_actor_and_an_interrupt_does_not(
    context: JobContext, method: str, status: int
) -> None:
    actor = context.create_actor(Signal)
    with pytest.raises(TaskError, match="KeyboardInterrupt"):
        context.get(actor.interrupt(), timeout=60)
    assert context.get(actor.send(), timeout=60) == 0
    with pytest.raises(ActorDiedError, match=f"exited with status {status}"):
        context.get([getattr(actor, method)(), actor.never()], timeout=60)
    with pytest.raises(ActorDiedError, match=f"exited with status {status}"):
        context.get(actor.wait(), timeout=60)


def test_the_cancel_of_a_coroutine_ends_it_at_its_await(
    context: JobContext, tmp_path: Path
) -> None:
    started, ended = tmp_path / "started", tmp_path / "ended"
    os.mkfifo(started)

    class Sleeps:
        async def sleep(self):
            started.write_text("")
            try:
                await asyncio.sleep(600)
            finally:
                ended.touch()

        async def answer(self):
            return 1

    async def sleep():
        await Sleeps().sleep()

    actor = context.create_actor(Sleeps)
    # One after the other: either of two writers might be the one that the pipe lets in.
    for begin in (actor.sleep, lambda: context.create_task(sleep)):
        call = begin()
        started.read_text()
        context.cancel(call)
        with pytest.raises(TaskCancelledError):
            context.get(call)
        assert eventually(ended.exists)
        ended.unlink()
    assert context.get(actor.answer(), timeout=60) == 1


def test_references_are_awaited_in_actors_tasks_and_the_driver(context: JobContext) -> None:
    class Doubles:
        def double(self, n):
            return 2 * n

        def fail(self):
            raise ValueError("no number")

    class Adds:
        async def add(self, other):
            return sum(await asyncio.gather(other.double(1), other.double(2)))

    async def use(own, doubles):
        numbers = [own.create_task(abs, (-n,)) for n in range(100)]
        large = await own.create_task(lambda: bytes(SIZE))
        try:
            await doubles.fail()
        except ValueError as error:
            failure = str(error)
        late = own.create_task(time.sleep, (600,))
        try:
            await asyncio.wait_for(late, 0.05)
        except asyncio.TimeoutError:
            own.cancel(late)
        return sum(await asyncio.gather(*numbers)), len(large), failure

    doubles = context.create_actor(Doubles)
    assert context.get(context.create_actor(Adds).add(doubles), timeout=60) == 6
    expected = (4950, SIZE, "no number")
    assert context.get(context.create_task(use, (context, doubles)), timeout=60) == expected
    assert asyncio.run(asyncio.wait_for(use(context, doubles), 60)) == expected
    # Nothing waits any more.
    assert eventually(lambda: not context._driver.objects.pending())
