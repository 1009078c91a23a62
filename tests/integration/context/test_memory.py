"""Memory of a driver and its executors over many tasks."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from monarch_client.context import JobContext

TASKS = 10_000
ROUNDS = 10


def resident_bytes(pid: str = "self") -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.feature("S4.5")
def test_memory_stays_flat_over_a_hundred_thousand_tasks() -> None:
    def total() -> int:
        gc.collect()
        zygote = context._driver.hosts.link.pid
        executors = Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()
        return resident_bytes() + sum(map(resident_bytes, executors))

    with JobContext(resources={"CPU": 2}) as context:
        for number in range(ROUNDS):
            refs = [context.create_task(abs, (-n,)) for n in range(TASKS)]
            assert sum(context.get(refs)) == TASKS * (TASKS - 1) // 2
            del refs
            if number == 1:
                before = total()
        grown = total() - before
        assert len(context._driver.tasks) == 0
    assert grown / (TASKS * (ROUNDS - 2)) < 100
