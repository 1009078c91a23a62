"""The driver: takes Monarch's basics one after the other, and checks the result of each."""

from __future__ import annotations

import sys
from typing import Any

from monarch.actor import Actor, ActorError, current_rank, endpoint, this_host
from monarch.rdma import RDMABuffer
from mportal_runtime import meshes

PROCS_PER_HOST = 2
BUFFER_BYTES = 1 << 20
WAIT_S = 120.0
HALF = 2


class Counter(Actor):
    """Keeps a number."""

    def __init__(self, start: int) -> None:
        self.value = start

    @endpoint
    def add(self, amount: int) -> None:
        """Add to the number."""
        self.value += amount

    @endpoint
    def read(self) -> int:
        """Return the number."""
        return self.value

    @endpoint
    def divide(self, by: int) -> int:
        """Return a quotient; ZeroDivisionError for 0."""
        return self.value // by


class Member(Actor):
    """Passes numbers on to the next of a ring."""

    def __init__(self) -> None:
        self.rank = current_rank().rank

    @endpoint
    async def pass_on(self, ring: Any, hops: int, total: int) -> int:
        """Add the own rank, and return what the rest of the way adds up to."""
        total += self.rank
        if hops == 1:
            return total
        host, proc = divmod((self.rank + 1) % (2 * PROCS_PER_HOST), PROCS_PER_HOST)
        following = ring.slice(hosts=host, procs=proc)
        result: int = await following.pass_on.call_one(ring, hops - 1, total)
        return result


class Owner(Actor):
    """Offers its memory to others."""

    def __init__(self) -> None:
        self.memory = bytearray(BUFFER_BYTES)
        self.memory[:5] = b"hello"
        self.buffer: RDMABuffer | None = None

    @endpoint
    def offer(self) -> RDMABuffer:
        """Return a handle of the memory."""
        self.buffer = RDMABuffer(memoryview(self.memory))
        return self.buffer

    @endpoint
    def end_of_memory(self) -> bytes:
        """Return the last bytes."""
        return bytes(self.memory[-3:])


class Reader(Actor):
    """Uses the memory of another process."""

    @endpoint
    async def exchange(self, buffer: RDMABuffer) -> bytes:
        """Read the memory, write to its end, and return how it begins."""
        mine = bytearray(BUFFER_BYTES)
        await buffer.read_into(memoryview(mine))
        mine[-3:] = b"bye"
        await buffer.write_from(memoryview(mine))
        return bytes(mine[:5])


def counting(procs: Any, count: int) -> bool:
    """Use every kind of call."""
    counters = procs.spawn("counters", Counter, 10)
    counters.add.broadcast(1)
    counters.add.call(4).get(timeout=WAIT_S)
    streamed = sorted(answer.get(timeout=WAIT_S) for answer in counters.read.stream())
    collected = list(counters.read.call().get(timeout=WAIT_S).values())
    return bool(streamed == collected == [15] * count)


def one_host(procs: Any) -> bool:
    """Change the actors of one host, and see that the others stay."""
    counters = procs.spawn("hosts", Counter, 0)
    counters.slice(hosts=1).add.call(7).get(timeout=WAIT_S)
    values = list(counters.read.call().get(timeout=WAIT_S).values())
    return bool(values == [0] * PROCS_PER_HOST + [7] * PROCS_PER_HOST)


def errors(procs: Any) -> bool:
    """Have an actor raise, and use it again."""
    counter = procs.spawn("errors", Counter, 6).slice(hosts=0, procs=0)
    try:
        counter.divide.call_one(0).get(timeout=WAIT_S)
    except ActorError as error:
        return "ZeroDivisionError" in str(error) and (
            counter.divide.call_one(HALF).get(timeout=WAIT_S) == 6 // HALF
        )
    return False


def ring(procs: Any) -> bool:
    """Go around once, over both hosts."""
    members = procs.spawn("ring", Member)
    size = 2 * PROCS_PER_HOST
    first = members.slice(hosts=0, procs=0)
    total = first.pass_on.call_one(members, size, 0).get(timeout=WAIT_S)
    return bool(total == sum(range(size)))


def buffers(procs: Any) -> bool:
    """Read and write the memory of the first host from the second."""
    owner = procs.slice(hosts=0, procs=0).spawn("owner", Owner)
    reader = procs.slice(hosts=1, procs=1).spawn("reader", Reader)
    buffer = owner.offer.call_one().get(timeout=WAIT_S)
    begin = reader.exchange.call_one(buffer).get(timeout=WAIT_S)
    return bool(begin == b"hello" and owner.end_of_memory.call_one().get(timeout=WAIT_S) == b"bye")


def main() -> int:
    """Return 1 if a result is wrong."""
    local = this_host().spawn_procs(per_host={"procs": PROCS_PER_HOST})
    results = {"on this host": counting(local, PROCS_PER_HOST)}
    procs = meshes.trainers.spawn_procs(per_host={"procs": PROCS_PER_HOST})
    results["on all hosts"] = counting(procs, 2 * PROCS_PER_HOST)
    for step in (one_host, errors, ring, buffers):
        results[step.__name__] = step(procs)
    for name, is_right in results.items():
        print(f"{name}: {'right' if is_right else 'WRONG'}", flush=True)
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
