"""Measure how fast 10 MB move from one host of a mesh to another: `python host_probe.py ours ...`.

Run by `bench.context.hosts` with "ours", "ours_rdma", "monarch" or "rdma", a folder of
certificates, and the addresses of two workers. Its last line is a number: GB/s.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from monarch.actor import Actor, enable_transport, endpoint
from monarch.rdma import RDMABuffer

from monarch_client.attaching import meshes, profile
from monarch_client.context import ActorOptions, JobContext, get_job_context
from monarch_client.context.hosting.rdma import Transport

BYTES, GETS = 10_000_000, 12


def make(number: int) -> np.ndarray:
    """Return an array that no host has yet."""
    return np.full(BYTES, number, np.uint8)


class Holder:
    """An actor of a task context."""

    def make(self, number: int) -> np.ndarray:
        """Store an array on this host."""
        return make(number)

    def get(self, refs: list[Any]) -> float:
        """Return the seconds of a `get`."""
        started = time.perf_counter()
        array = get_job_context().get(refs[0])
        took = time.perf_counter() - started
        assert array.nbytes == BYTES
        return took


class Raw(Actor):  # type: ignore[misc]  # monarch has no types
    """An actor of Monarch."""

    @endpoint  # type: ignore[untyped-decorator]
    async def make(self, number: int) -> np.ndarray:
        """Return an array in a message."""
        return make(number)

    @endpoint  # type: ignore[untyped-decorator]
    async def get(self, holder: Any, number: int) -> float:
        """Return the seconds until the message has arrived."""
        started = time.perf_counter()
        array = await holder.make.call_one(number)
        took = time.perf_counter() - started
        assert array.nbytes == BYTES
        return took


class Buffers(Actor):  # type: ignore[misc]  # monarch has no types
    """An actor of Monarch whose arrays are read with RDMABuffer: over ibverbs, else over TCP."""

    def __init__(self) -> None:
        self._memory = memoryview(bytearray(BYTES))

    @endpoint  # type: ignore[untyped-decorator]
    async def make(self, number: int) -> Any:
        """Return a buffer of new contents in the same memory, which may be registered once."""
        self._memory[:] = make(number).data
        return RDMABuffer(self._memory)

    @endpoint  # type: ignore[untyped-decorator]
    async def get(self, holder: Any, number: int) -> float:
        """Return the seconds of a read, without those in which the buffer was made."""
        buffer = await holder.make.call_one(number)
        started = time.perf_counter()
        await buffer.read_into(self._memory)
        took = time.perf_counter() - started
        assert self._memory[-1] == number
        return took


def ours(hosts: Any, transport: Transport = "tcp") -> list[float]:
    """Measure a task context."""
    with JobContext(hosts, object_transport=transport) as context:
        options = ActorOptions(resources={"CPU": 1})
        first, second = (context.create_actor(Holder, options=options) for _ in range(2))
        times = []
        for number in range(GETS):
            ref = first.make(number)
            context.wait([ref])
            times.append(context.get(second.get([ref])))
        return times


def ours_rdma(hosts: Any) -> list[float]:
    """Measure a task context whose hosts read each other's memory."""
    return ours(hosts, "rdma")


def monarch(hosts: Any, kind: type[Actor] = Raw) -> list[float]:
    """Measure a message."""
    actors = hosts.spawn_procs(per_host={"procs": 1}).spawn("raw", kind).flatten("rank")
    first, second = actors.slice(rank=0), actors.slice(rank=1)
    return [second.get.call_one(first, number).get() for number in range(GETS)]


def rdma(hosts: Any) -> list[float]:
    """Measure a buffer."""
    return monarch(hosts, Buffers)


if __name__ == "__main__":
    system, folder, *addresses = sys.argv[1:]
    profile.use(Path(folder))
    enable_transport("tls://localhost:0")
    systems = {"ours": ours, "ours_rdma": ours_rdma, "monarch": monarch, "rdma": rdma}
    times = systems[system](meshes.meshes_of({"trainers": addresses})["trainers"])
    # The first ones connect.
    print(json.dumps(BYTES / statistics.median(times[2:]) / 1e9), flush=True)
