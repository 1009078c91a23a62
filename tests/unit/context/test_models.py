"""The scheduler, object counts and waits against simple models, by random operations."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from monarch_client.context.amounts import CPU, GPU, UNIT, task_shape, to_amounts, with_processes
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.waiter import Waiter
from monarch_client.context.scheduling import Allocation, Item, Scheduler
from monarch_client.context.values import ERROR, STORED, VALUE, Payload

HOSTS = {"a": {"CPU": 2, "GPU": 2}, "b": {"CPU": 3, "disk": 1}}
SHAPES = [
    task_shape(each)
    for each in (
        None,
        {"CPU": 2},
        {"CPU": 0.5},
        {"CPU": 0},
        {"GPU": 0.5},
        {"CPU": 1, "GPU": 2},
        {"CPU": 1, "disk": 1},
    )
]


class SchedulerModel(RuleBasedStateMachine):
    """Every call is queued, allocated or ended; hosts have what allocations have not taken."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler()
        self.totals = {name: with_processes(to_amounts(each)) for name, each in HOSTS.items()}
        for name, total in self.totals.items():
            self.scheduler.add_host(name, total)
        self.queued: dict[bytes, Item] = {}
        self.allocated: dict[bytes, Allocation] = {}
        self.made = 0

    @rule(shape=st.sampled_from(SHAPES), kind=st.sampled_from("xyz"), solo=st.booleans())
    def enqueue(self, shape, kind, solo) -> None:
        self.made += 1
        made = Item(self.made.to_bytes(4), shape, kind=kind, solo=solo)
        self.scheduler.enqueue(made)
        self.queued[made.id] = made

    @rule()
    def assign(self) -> None:
        oldest = {}
        for each in self.queued.values():
            oldest.setdefault(each.shape, each.order)
        for given in self.scheduler.assign():
            for each in given.items:
                del self.queued[each.id]
                self.allocated[each.id] = given.allocation
                assert each.order >= oldest[each.shape]
                assert len(given.allocation.items) == 1 or not each.solo
        for each in self.queued.values():
            fits = [host.name for host in self.scheduler.hosts.values() if host.fits(each.shape)]
            assert not fits, f"{each} fits {fits}"

    @precondition(lambda self: self.allocated)
    @rule(data=st.data(), ran_ns=st.sampled_from([None, 10_000, 400_000, 10**9]))
    def finish(self, data, ran_ns) -> None:
        allocation = data.draw(st.sampled_from(list(self.allocated.values())))
        call = next(iter(allocation.items))
        self.scheduler.finish(allocation, call, ran_ns)
        del self.allocated[call]

    @precondition(lambda self: self.allocated)
    @rule(data=st.data(), paused=st.booleans())
    def pause(self, data, paused) -> None:
        allocation = data.draw(st.sampled_from(list(self.allocated.values())))
        self.scheduler.pause(allocation, paused=paused)

    @rule()
    def recall(self) -> None:
        found = self.scheduler.recall()
        if found is not None:
            allocation, count = found
            calls = list(allocation.items)[1:][-count:]
            back = {call: allocation.items[call] for call in calls}
            self.scheduler.returned(allocation, calls)
            for call, each in back.items():
                del self.allocated[call]
                self.queued[call] = each
            self.queued = dict(sorted(self.queued.items(), key=lambda pair: pair[1].order))

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def withdraw(self, data) -> None:
        call = data.draw(st.sampled_from(list(self.queued)))
        assert self.scheduler.withdraw(call)
        del self.queued[call]

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.scheduler.queued == len(self.queued)
        assert {id(each) for each in self.allocated.values()} == set(
            map(id, self.scheduler.allocations)
        )

    @invariant()
    def hosts_have_what_allocations_have_not_taken(self) -> None:
        for name, total in self.totals.items():
            taken, gpus = Counter(), Counter()
            for allocation in self.scheduler.allocations:
                if allocation.host == name:
                    returned = {CPU, "processes without CPU"} if allocation.is_paused else set()
                    taken.update(
                        {key: amount for key, amount in allocation.shape if key not in returned}
                    )
                    amount = dict(allocation.shape).get(GPU, 0)
                    gpus.update({device: min(amount, UNIT) for device in allocation.devices})
            free = self.scheduler.hosts[name].free
            assert free == {key: amount - taken[key] for key, amount in total.items()}
            assert all(amount <= UNIT for amount in gpus.values())


class Stored:
    """The objects of a store: reported to the driver, or taken over by it."""

    def __init__(self) -> None:
        self.reported: set[bytes] = set()
        self.adopted: set[bytes] = set()

    def adopt(self, payload: Payload, ref: bytes, host: str, producer: str) -> None:
        self.reported.remove(payload.data)
        self.adopted.add(payload.data)

    def refuse(self, payload: Payload, host: str) -> None:
        self.reported.remove(payload.data)

    def discard(self, object_id: bytes) -> None:
        self.adopted.remove(object_id)

    def readable(self, payload: Payload, host: str) -> Payload:
        return payload


class ObjectModel(RuleBasedStateMachine):
    """An object exists while something refers to it, or its call has not ended."""

    def __init__(self) -> None:
        super().__init__()
        self.stored = Stored()
        self.table = ObjectTable(self.stored)
        self.stored_ids: set[bytes] = set()
        self.references: Counter[bytes] = Counter()
        self.inside: dict[bytes, tuple[bytes, ...] | None] = {}
        self.failed: set[bytes] = set()
        self.waits: list[tuple[Waiter, list[bytes], int, bool, list[bool]]] = []

    def existing(self) -> set[bytes]:
        """Find what references, objects that exist and pending calls lead to."""
        found = {ref for ref, inner in self.inside.items() if inner is None}
        waiting = [ref for ref, count in self.references.items() if count > 0]
        while waiting:
            ref = waiting.pop()
            if ref not in found:
                found.add(ref)
            elif self.inside.get(ref) is None:
                continue
            inner = self.inside[ref]
            if inner is not None:
                waiting += [each for each in inner if each not in found]
        return found

    @rule()
    def add(self) -> None:
        ref = len(self.inside).to_bytes(4)
        self.table.add(ref)
        self.inside[ref] = None
        self.references[ref] = 1

    @precondition(lambda self: any(inner is None for inner in self.inside.values()))
    @rule(data=st.data(), kind=st.sampled_from([VALUE, ERROR, STORED]))
    def settle(self, data, kind) -> None:
        pending = [ref for ref, inner in self.inside.items() if inner is None]
        ref = data.draw(st.sampled_from(pending))
        held = sorted(each for each, count in self.references.items() if count > 0 and each < ref)
        inner = tuple(data.draw(st.lists(st.sampled_from(held), max_size=3))) if held else ()
        self.inside[ref] = inner
        if kind == ERROR:
            self.failed.add(ref)
        if kind == STORED:
            self.stored_ids.add(ref)
            self.stored.reported.add(ref)
        self.table.settle(ref, Payload(kind, ref, inner))
        # The result of a call that was cancelled comes later.
        self.stored.reported.add(b"late")
        self.table.settle(ref, Payload(STORED, b"late"))

    @precondition(lambda self: self.stored.adopted)
    @rule(data=st.data())
    def lose(self, data) -> None:
        """Delete the value of an object, as with its host: its call runs again."""
        ref = data.draw(st.sampled_from(sorted(self.stored.adopted)))
        self.stored.adopted.remove(ref)
        self.stored_ids.remove(ref)
        self.inside[ref] = None
        self.table.lose([ref])
        self.waits = [each for each in self.waits if not (each[0].is_done and ref in each[1])]

    @precondition(lambda self: +self.references)
    @rule(data=st.data())
    def keep(self, data) -> None:
        ref = data.draw(st.sampled_from(sorted(+self.references)))
        self.references[ref] += 1
        self.table.keep(ref)

    @precondition(lambda self: +self.references)
    @rule(data=st.data())
    def drop(self, data) -> None:
        ref = data.draw(st.sampled_from(sorted(+self.references)))
        waits = {each for _, refs, _, _, _ in self.waits for each in refs}
        if self.references[ref] > 1 or ref not in waits:
            self.references[ref] -= 1
            self.table.drop(ref)

    @precondition(lambda self: +self.references)
    @rule(data=st.data(), values=st.booleans())
    def wait(self, data, values) -> None:
        held = sorted(+self.references)
        refs = data.draw(st.lists(st.sampled_from(held), min_size=1, unique=True))
        count = len(refs) if values else data.draw(st.integers(1, len(refs)))
        done: list[bool] = []
        waiter = Waiter(self.table, refs, count, values=values, on_done=lambda: done.append(True))
        if waiter.is_done:
            done.append(True)
        self.waits.append((waiter, refs, count, values, done))

    @invariant()
    def only_what_is_referred_to_exists(self) -> None:
        existing = self.existing()
        assert {ref for ref in self.inside if ref in self.table} == existing
        assert len(self.table) == len(existing)

    @invariant()
    def the_store_has_the_values_of_what_exists(self) -> None:
        assert self.stored.adopted == self.stored_ids & self.existing()
        assert not self.stored.reported

    @invariant()
    def waits_end_exactly_when_enough_is_ready(self) -> None:
        for waiter, refs, count, values, done in self.waits:
            ready = [ref for ref in refs if self.inside[ref] is not None]
            failed = values and any(ref in self.failed for ref in ready)
            assert waiter.is_done is (len(ready) >= count or failed)
            assert len(done) == waiter.is_done
            assert waiter.ready() == ready


TestScheduler = SchedulerModel.TestCase
TestObjects = ObjectModel.TestCase
TestScheduler.settings = TestObjects.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
