"""The decisions which call runs on which host: pure, without processes, sockets or clocks.

A call is enqueued with a shape. `assign` gives it an allocation: its resources on a host, until it
ends. Calls that are known to be short may share the allocation of another one and run after it: a
message for each of them would cost more than they do. They can be recalled until they start.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from monarch_client.context.amounts import GPU, UNIT, Amounts, Shape
from monarch_client.context.errors import InfeasibleError
from monarch_client.context.hosts import Host, refusal, shortage

# The work that one allocation is given ahead: more costs those that wait for it too long.
AHEAD_NS = 5_000_000
MOST_AHEAD = 256
_LEAST_NS = 20_000
_UNKNOWN_NS = 10**15
_MOST_KINDS = 10_000
# A new measurement weighs a quarter.
_WEIGHT = 4


@dataclass(slots=True, eq=False)
class Item:
    """A call in the queue. `kind` is what calls of about the same duration share.

    `solo`: it has an allocation of its own, with no other calls. `near`: the bytes of its arguments
    that each host has.
    """

    id: bytes
    shape: Shape
    kind: Hashable = None
    solo: bool = False
    order: int = -1
    near: Mapping[str, int] | None = None


@dataclass(slots=True, eq=False)
class Allocation:
    """Resources of a host that calls have taken; the first of `items` runs, others wait for it."""

    host: str
    shape: Shape
    devices: tuple[int, ...]
    items: dict[bytes, Item] = field(default_factory=dict)
    ahead_ns: int = 0
    is_solo: bool = False
    is_paused: bool = False
    is_recalled: bool = False

    @property
    def shares_gpu(self) -> bool:
        """Whether it has a part of a GPU, whose other parts others have."""
        return 0 < dict(self.shape).get(GPU, 0) < UNIT


@dataclass(slots=True)
class Assignment:
    """The calls that were added to an allocation."""

    allocation: Allocation
    items: list[Item]
    is_new: bool


class Scheduler:
    """The queue, the hosts and the allocations of one context."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self._queues: dict[Shape, deque[Item]] = {}
        self._queued: set[bytes] = set()
        self._allocations: dict[Allocation, None] = {}
        self._durations: dict[Hashable, int] = {}
        self._enqueued = 0

    @property
    def queued(self) -> int:
        """The number of calls that have no allocation."""
        return len(self._queued)

    @property
    def allocations(self) -> list[Allocation]:
        """All allocations, the oldest first."""
        return list(self._allocations)

    def add_host(self, name: str, total: Amounts) -> None:
        """Add a host."""
        self.hosts[name] = Host(name, dict(total))

    def remove_host(self, name: str) -> list[Allocation]:
        """Remove a lost host; return its allocations, which are released."""
        del self.hosts[name]
        lost = [allocation for allocation in self._allocations if allocation.host == name]
        for allocation in lost:
            del self._allocations[allocation]
        return lost

    def check(self, shape: Shape) -> None:
        """Raise InfeasibleError if no host can ever fit the shape."""
        if error := self.refusal(shape):
            raise error

    def refusal(self, shape: Shape) -> InfeasibleError | None:
        """Return why no host can ever fit the shape; None if one can."""
        return refusal(self.hosts, shape)

    def shortage(self, shape: Shape) -> str:
        """Describe what a shape that does not fit now waits for."""
        return shortage(self.hosts, shape)

    def starved(self) -> list[Item]:
        """List the first call of each shape that actors leave no room for, if all tasks ended."""
        heads = [head for shape in list(self._queues) if (head := self._head(shape))]
        return [head for head in heads if not self._fits_beside_actors(head.shape)]

    def _fits_beside_actors(self, shape: Shape) -> bool:
        hosts = {name: Host(name, host.total) for name, host in self.hosts.items()}
        for allocation in self._allocations:
            if not allocation.items:  # an actor's
                for name, amount in allocation.shape:
                    hosts[allocation.host].free[name] -= amount
                if allocation.is_paused:
                    hosts[allocation.host].pause(allocation.shape, paused=True)
        return any(
            all(amount <= host.free.get(name, 0) for name, amount in shape)
            for host in hosts.values()
        )

    def enqueue(self, item: Item) -> None:
        """Add a call to the queue: at its former position if it was there before."""
        is_new = item.order < 0
        if is_new:
            item.order = self._enqueued
            self._enqueued += 1
        queue = self._queues.setdefault(item.shape, deque())
        # The same order: it was withdrawn, and its former entry is still there.
        if is_new or not queue or queue[-1].order <= item.order:
            queue.append(item)
        elif item.order < queue[0].order:
            queue.appendleft(item)
        else:
            position = next(at for at, each in enumerate(queue) if each.order > item.order)
            queue.insert(position, item)
        self._queued.add(item.id)

    def withdraw(self, call: bytes) -> bool:
        """Take a call out of the queue. Whether it was there."""
        was_queued = call in self._queued
        # `_head` drops it from its deque.
        self._queued.discard(call)
        return was_queued

    def assign(self, *, ahead: bool = True) -> list[Assignment]:
        """Give allocations to calls that fit now, the oldest first; return what was given.

        With `ahead` others may follow the short calls of an allocation.
        """
        if not self._queued:
            return []
        given: dict[Allocation, Assignment] = {}
        heads = [(head.order, shape) for shape in list(self._queues) if (head := self._head(shape))]
        heapq.heapify(heads)
        while heads:
            _, shape = heapq.heappop(heads)
            if not self._give_allocation(shape, given):
                if ahead:
                    self._give_ahead(shape, given)
                # What a younger shape has taken is free for an older one once its calls end.
                ahead = False
            elif head := self._head(shape):
                heapq.heappush(heads, (head.order, shape))
        return list(given.values())

    def hold(self, shape: Shape, host: str | None = None) -> Allocation | None:
        """Take an allocation for an actor; None: it does not fit now."""
        name = self._host_for(shape) if host is None else host
        return self._allocation(name, shape) if name else None

    def finish(self, allocation: Allocation, call: bytes, ran_ns: int | None = None) -> bool:
        """End a call of an allocation. Whether the allocation ended with it."""
        item = allocation.items.pop(call)
        if ran_ns is not None:
            self._learn(item.kind, ran_ns)
        if allocation.items:
            allocation.ahead_ns = sum(self._duration(each) for each in allocation.items.values())
            return False
        self.release(allocation)
        return True

    def release(self, allocation: Allocation) -> None:
        """Give an allocation's resources back."""
        if self._allocations.pop(allocation, self) is self:
            return
        host = self.hosts[allocation.host]
        if allocation.is_paused:
            host.pause(allocation.shape, paused=False)
        host.give(allocation.shape, allocation.devices)

    def pause(self, allocation: Allocation, *, paused: bool) -> None:
        """Let the calls of an allocation wait for others, or resume."""
        if allocation in self._allocations and allocation.is_paused is not paused:
            allocation.is_paused = paused
            self.hosts[allocation.host].pause(allocation.shape, paused=paused)

    def recall(self) -> tuple[Allocation, int] | None:
        """Return an allocation whose calls could start elsewhere now, and how many to recall."""
        if self._queued:
            return None
        for allocation in self._allocations:
            ahead = len(allocation.items) - 1
            if ahead > 0 and not allocation.is_recalled and self._host_for(allocation.shape):
                allocation.is_recalled = True
                return allocation, (ahead + 1) // 2
        return None

    def returned(self, allocation: Allocation, calls: Iterable[bytes]) -> bool:
        """Enqueue calls of an allocation again that were recalled and have not started.

        Whether the allocation ended: the others of its calls have ended.
        """
        allocation.is_recalled = False
        for call in calls:
            if item := allocation.items.pop(call, None):
                self.enqueue(item)
        allocation.ahead_ns = sum(self._duration(each) for each in allocation.items.values())
        if not allocation.items:
            self.release(allocation)
        return not allocation.items

    def _head(self, shape: Shape) -> Item | None:
        queue = self._queues[shape]
        while queue:
            if queue[0].id in self._queued:
                return queue[0]
            queue.popleft()
        del self._queues[shape]
        return None

    def _pop(self, shape: Shape) -> Item:
        item = self._queues[shape].popleft()
        self._queued.remove(item.id)
        return item

    def _give_allocation(self, shape: Shape, given: dict[Allocation, Assignment]) -> bool:
        head = self._head(shape)
        host = self._host_for(shape, head.near if head else None)
        if host is None:
            return False
        allocation = self._allocation(host, shape)
        item = self._pop(shape)
        allocation.is_solo = item.solo
        allocation.items[item.id] = item
        allocation.ahead_ns = self._duration(item)
        given[allocation] = Assignment(allocation, [item], is_new=True)
        return True

    def _give_ahead(self, shape: Shape, given: dict[Allocation, Assignment]) -> None:
        """Let calls follow those of an allocation, each the one that ends first."""
        rooms = [
            (allocation.ahead_ns, position, allocation)
            for position, allocation in enumerate(self._allocations)
            if allocation.shape == shape
            and allocation.items
            and not (allocation.is_solo or allocation.is_paused)
        ]
        heapq.heapify(rooms)
        while rooms and (item := self._head_of(shape)):
            _, position, allocation = heapq.heappop(rooms)
            if not self._has_room(allocation, item):
                continue
            self._pop(shape)
            allocation.items[item.id] = item
            allocation.ahead_ns += self._duration(item)
            given.setdefault(allocation, Assignment(allocation, [], is_new=False)).items.append(
                item
            )
            heapq.heappush(rooms, (allocation.ahead_ns, position, allocation))

    def _head_of(self, shape: Shape) -> Item | None:
        return self._head(shape) if shape in self._queues else None

    def _has_room(self, allocation: Allocation, item: Item) -> bool:
        is_short = allocation.ahead_ns + self._duration(item) <= AHEAD_NS
        return is_short and not item.solo and len(allocation.items) < MOST_AHEAD

    def _host_for(self, shape: Shape, near: Mapping[str, int] | None = None) -> str | None:
        """Return the host that fits the shape: with most bytes near, then with most CPUs free."""
        fitting = [host for host in self.hosts.values() if host.fits(shape)]
        bytes_near = near or {}

        def merits(host: Host) -> tuple[int, int]:
            return bytes_near.get(host.name, 0), host.free.get("CPU", 0)

        best = max(fitting, key=merits, default=None)
        return best.name if best else None

    def _allocation(self, host: str, shape: Shape) -> Allocation:
        allocation = Allocation(host, shape, self.hosts[host].take(shape))
        self._allocations[allocation] = None
        return allocation

    def _duration(self, item: Item) -> int:
        return self._durations.get(item.kind, _UNKNOWN_NS)

    def _learn(self, kind: Hashable, ran_ns: int) -> None:
        if len(self._durations) >= _MOST_KINDS:
            self._durations.clear()
        before = self._durations.get(kind, ran_ns)
        self._durations[kind] = max(_LEAST_NS, before + (ran_ns - before) // _WEIGHT)
