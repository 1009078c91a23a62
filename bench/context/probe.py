"""Measure the same work in a task context and in Ray: `python probe.py ours`, or `ray`.

Run by `bench.context.calls`, in the environment of each, so it imports neither at the top. Its last
line is JSON: seconds, rates and bytes by figure.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUND_TRIPS, BURST, ACTORS, WAITS, MEMORY_TASKS = 300, 2000, 8, 1000, 10_000


def add(a: int, b: int) -> int:
    """Add two numbers: a task that takes no time."""
    return a + b


class Counter:
    """An actor that takes no time."""

    def __init__(self) -> None:
        self.n = 0

    def add(self) -> int:
        """Count one call."""
        self.n += 1
        return self.n


class Ours:
    """A task context."""

    def __init__(self) -> None:
        from monarch_client.context import JobContext  # noqa: PLC0415 - not in Ray's environment

        self._context = JobContext()
        self.get = self._context.get
        self.wait = self._context.wait

    def task(self, n: int) -> Any:
        """Start a task."""
        return self._context.create_task(add, (n, 1))

    def actor(self) -> Any:
        """Start an actor."""
        return self._context.create_actor(Counter)

    def call(self, actor: Any) -> Any:
        """Call an actor."""
        return actor.add()

    def pids(self) -> list[int]:
        """List the processes whose memory counts."""
        return [os.getpid(), *descendants(os.getpid())]

    def close(self) -> None:
        """End all processes."""
        self._context.close()


class Ray:
    """A Ray of its own on this machine."""

    def __init__(self) -> None:
        import ray  # noqa: PLC0415 - in Ray's environment alone

        self._ray = ray
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        self._add = ray.remote(add)
        self._counter = ray.remote(Counter)
        self.get = ray.get

    def wait(self, refs: list[Any], num_returns: int) -> Any:
        """Wait as a task context does: without moving values."""
        return self._ray.wait(refs, num_returns=num_returns, fetch_local=False)

    def task(self, n: int) -> Any:
        """Start a task."""
        return self._add.remote(n, 1)

    def actor(self) -> Any:
        """Start an actor."""
        return self._counter.options(num_cpus=0).remote()

    def call(self, actor: Any) -> Any:
        """Call an actor."""
        return actor.add.remote()

    def pids(self) -> list[int]:
        """List the processes whose memory counts: the driver, whose part ours is compared with."""
        return [os.getpid(), *descendants(os.getpid())]

    def close(self) -> None:
        """End Ray."""
        self._ray.shutdown()


def descendants(pid: int) -> list[int]:
    """List the processes that a process has started, and those that they have."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, found) for each in (child, *descendants(child))]


def resident_bytes(pids: list[int]) -> int:
    """Return the memory of processes."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:  # noqa: PERF203 - it has ended
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def seconds(work: Callable[[], object]) -> float:
    """Return how long the work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(make: Callable[[], Any]) -> dict[str, float]:
    """Return all figures of one system."""
    started = time.perf_counter()
    system = make()
    system.get(system.task(0))
    found = {"start_s": time.perf_counter() - started}
    system.get([system.task(n) for n in range(200)])
    found["task_roundtrip_ms"] = 1000 * statistics.median(
        seconds(lambda: system.get(system.task(1))) for _ in range(ROUND_TRIPS)
    )
    found["tasks_per_s"] = BURST / min(
        seconds(lambda: system.get([system.task(n) for n in range(BURST)])) for _ in range(3)
    )
    actors: list[Any] = []

    def create() -> None:
        actors.append(system.actor())
        system.get(system.call(actors[-1]))

    found["actor_create_ms"] = 1000 * statistics.median(seconds(create) for _ in range(ACTORS))
    found["actor_roundtrip_ms"] = 1000 * statistics.median(
        seconds(lambda: system.get(system.call(actors[0]))) for _ in range(ROUND_TRIPS)
    )
    found["actor_calls_per_s"] = BURST / min(
        seconds(lambda: system.get([system.call(actors[0]) for _ in range(BURST)]))
        for _ in range(3)
    )
    refs: list[Any] = [system.task(n) for n in range(WAITS)]
    system.get(refs)
    found["wait_1000_ms"] = 1000 * statistics.median(
        seconds(lambda: system.wait(refs, num_returns=WAITS)) for _ in range(10)
    )
    refs = []
    before = resident_bytes(system.pids())
    for _ in range(5):
        system.get([system.task(n) for n in range(MEMORY_TASKS // 5)])
    grown = resident_bytes(system.pids()) - before
    found["memory_per_task_bytes"] = max(0.0, grown / MEMORY_TASKS)
    system.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure({"ours": Ours, "ray": Ray}[sys.argv[1]])), flush=True)
