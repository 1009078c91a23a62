"""Kills of executors, actors and the zygote at random moments: every reference ends."""

from __future__ import annotations

import os
import random
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, JobContext, TaskOptions
from monarch_client.context.errors import ActorDiedError, TaskLostError
from tests.waiting import eventually

pytestmark = pytest.mark.slow
SIZE = 100_000


class Killer(threading.Thread):
    """A thread that kills processes of a context, now and then the zygote."""

    def __init__(self, context: JobContext, seed: int) -> None:
        super().__init__()
        self.context = context
        self.random = random.Random(seed)
        self.ends = threading.Event()
        self.kills = 0

    def run(self) -> None:
        while not self.ends.wait(self.random.uniform(0.001, 0.05)):
            zygote = self.context._driver.hosts.link.pid
            victims = children(zygote)
            if self.random.random() < 0.03:
                victims = [zygote]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(self.random.choice(victims), 9)
                    self.kills += 1


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@pytest.mark.parametrize("seed", [1, 2])
def test_every_reference_ends_while_processes_are_killed(seed: int) -> None:
    def work(n):
        import time

        time.sleep(0.002)
        # A value that is dropped with the call, however that ends: some are in the store.
        n = len(context.get(context.put(bytes(n + SIZE * (n % 4 == 0))))) % SIZE
        return context.get(context.create_task(abs, (-n,))) if n % 5 == 0 else n

    class Adds:
        def add(self, a, b):
            return a + b

    with JobContext(resources={"CPU": 3}) as context:
        killer = Killer(context, seed)
        killer.start()
        values = 0
        try:
            options = TaskOptions(max_retries=5)
            refs = []
            for n in range(300):
                refs.append(context.create_task(work, (n,), options=options))
                if n % 10 == 0:
                    actor = context.create_actor(Adds, options=ActorOptions(name=f"adds {n}"))
                refs.append(actor.add(refs[-1], 1))
            for n, ref in enumerate(refs):
                with suppress(TaskLostError, ActorDiedError):
                    assert context.get(ref, timeout=100) == n // 2 + n % 2
                    values += 1
        finally:
            killer.ends.set()
            killer.join()
        assert killer.kills > 5
        assert values > 100
        # Nothing is left behind: all resources are free, and all objects forgotten.
        del refs, ref, actor
        assert context.get(context.create_task(int, options=TaskOptions({"CPU": 3}))) == 0
        assert eventually(lambda: not context._driver.scheduler.allocations)
        assert len(context._driver.tasks) == 0
        # `put` handles the references that were deleted before.
        assert eventually(lambda: context.put(0) is not None and len(context._driver.objects) <= 1)
        assert context._driver.objects.inline.used == 0
        assert eventually(lambda: context._driver.stored.store.usage().objects == 0)
