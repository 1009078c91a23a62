"""Tasks and actors that call Monarch themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monarch_client.context import JobContext
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.monarch]


def spawn_and_call():
    """Spawn processes of Monarch on this machine, and leave them to their end."""
    from monarch.actor import Actor, endpoint, this_host

    class Adds(Actor):
        def __init__(self):
            self.n = 0

        @endpoint
        def add(self, n):
            self.n += n
            return self.n, os.getpid()

    adds = this_host().spawn_procs(per_host={"gpus": 2}).spawn("adds", Adds)
    adds.add.call(1).get(timeout=60)
    return [found for _, found in adds.add.call(2).get(timeout=60)]


def test_tasks_and_actors_call_monarch_and_its_processes_end_with_theirs() -> None:
    class Calls:
        def call(self):
            return spawn_and_call()

    with JobContext(resources={"CPU": 1}) as context:
        tasks = [context.get(context.create_task(spawn_and_call), timeout=60) for _ in range(2)]
        found = [*tasks, context.get(context.create_actor(Calls).call(), timeout=60)]
        # A process that has imported Monarch runs others' tasks as before.
        assert context.get(context.create_task(abs, (-1,)), timeout=60) == 1
    pids = [pid for each in found for _, pid in each]
    assert [n for each in found for n, _ in each] == [3] * 6
    assert len(set(pids)) == 6
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
