"""The scheduler of a context: who gets resources, and when calls share an allocation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.context.amounts import task_shape, to_amounts, with_processes
from monarch_client.context.errors import InfeasibleError
from monarch_client.context.scheduling import Item, Scheduler


def scheduler_with(**hosts) -> Scheduler:
    made = Scheduler()
    for name, resources in hosts.items():
        made.add_host(name, with_processes(to_amounts(resources)))
    return made


def item(number: int, resources=None, **options) -> Item:
    return Item(bytes([number]), task_shape(resources), **options)


def started(scheduler: Scheduler) -> dict[int, object]:
    """Assign what fits; return the allocation of each call by its number."""
    return {each.id[0]: given.allocation for given in scheduler.assign() for each in given.items}


def test_the_oldest_call_that_fits_starts_first() -> None:
    scheduler = scheduler_with(a={"CPU": 2})
    scheduler.enqueue(item(1, {"CPU": 2}))
    scheduler.enqueue(item(2))
    assert list(started(scheduler)) == [1]
    scheduler.enqueue(item(3, {"CPU": 2}))
    assert not started(scheduler)


def test_a_call_runs_on_the_host_with_most_cpus_free() -> None:
    scheduler = scheduler_with(small={"CPU": 2}, large={"CPU": 4})
    for number in range(6):
        scheduler.enqueue(item(number))
    hosts = [allocation.host for allocation in started(scheduler).values()]
    assert hosts.count("large") == 4
    assert hosts[0] == "large"


@settings(max_examples=30, deadline=None)
@given(
    near=st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    taken=st.lists(st.sampled_from("abc"), max_size=6),
)
def test_a_call_runs_where_most_bytes_of_its_arguments_are_if_there_is_room(near, taken) -> None:
    scheduler = scheduler_with(a={"CPU": 1}, b={"CPU": 2}, c={"CPU": 3})
    for host in taken:
        if scheduler.hosts[host].fits(task_shape(None)):
            scheduler.hold(task_shape(None), host)
    free = {name: host.free["CPU"] for name, host in scheduler.hosts.items() if host.free["CPU"]}
    scheduler.enqueue(item(1, near=near))
    hosts = [allocation.host for allocation in started(scheduler).values()]
    merits = {name: (near.get(name, 0), amount) for name, amount in free.items()}
    assert [merits[host] for host in hosts] == [max(merits.values())] if free else not hosts


def test_a_withdrawn_call_that_is_enqueued_again_starts_once_at_its_former_position() -> None:
    scheduler = scheduler_with(a={"CPU": 3})
    for number in (1, 2, 3):
        scheduler.enqueue(calls := item(number))
        if number == 2:
            second = calls
    for each in (calls, second):
        scheduler.withdraw(each.id)
        scheduler.enqueue(each)
    assert list(started(scheduler)) == [1, 2, 3]
    assert not started(scheduler)


def test_a_call_that_waits_gives_its_cpu_back_and_keeps_its_gpu() -> None:
    scheduler = scheduler_with(a={"CPU": 1, "GPU": 1})
    scheduler.enqueue(item(1, {"CPU": 1, "GPU": 1}))
    (allocation,) = started(scheduler).values()
    scheduler.enqueue(item(2))
    scheduler.enqueue(item(3, {"CPU": 0, "GPU": 1}))
    scheduler.pause(allocation, paused=True)
    assert list(started(scheduler)) == [2]
    # It resumes at once: the host has one CPU too little until a call ends.
    scheduler.pause(allocation, paused=False)
    assert scheduler.hosts["a"].free["CPU"] < 0


def test_whole_gpus_are_not_split_while_parts_fit_elsewhere() -> None:
    scheduler = scheduler_with(a={"CPU": 8, "GPU": 2})
    for number in range(3):
        scheduler.enqueue(item(number, {"GPU": 0.5}))
    scheduler.enqueue(item(3, {"GPU": 1}))
    allocations = started(scheduler)
    assert [allocations[number].devices for number in range(3)] == [(0,), (0,), (1,)]
    assert 3 not in allocations
    scheduler.release(allocations[2])
    assert started(scheduler)[3].devices == (1,)


def test_calls_known_to_be_short_share_a_allocation_and_can_be_recalled() -> None:
    scheduler = scheduler_with(a={"CPU": 2})
    scheduler.enqueue(item(0, kind="short"))
    (allocation,) = started(scheduler).values()
    scheduler.finish(allocation, bytes([0]), ran_ns=30_000)
    for number in range(1, 9):
        scheduler.enqueue(item(number, kind="short"))
    allocations = started(scheduler)
    assert len(allocations) == 8
    assert len(set(map(id, allocations.values()))) == 2
    first, second = dict.fromkeys(allocations.values())
    for call in list(first.items):
        scheduler.finish(first, call, ran_ns=30_000)
    recalled, count = scheduler.recall()
    assert recalled is second
    assert count == len(second.items) // 2
    assert scheduler.recall() is None, "it has been recalled"
    given_back = list(second.items)[-count:]
    scheduler.returned(second, given_back)
    assert [bytes([number]) for number in started(scheduler)] == given_back


def test_calls_of_unknown_or_long_duration_never_wait_behind_others() -> None:
    scheduler = scheduler_with(a={"CPU": 1})
    scheduler.enqueue(item(0, kind="long"))
    (allocation,) = started(scheduler).values()
    scheduler.finish(allocation, bytes([0]), ran_ns=5_000_000_000)
    for number in range(1, 4):
        scheduler.enqueue(item(number, kind="long" if number < 3 else "unknown"))
    assert list(started(scheduler)) == [1]


def test_short_calls_do_not_keep_what_an_older_call_waits_for() -> None:
    scheduler = scheduler_with(a={"CPU": 1, "memory": 1})
    scheduler.enqueue(item(0, kind="short"))
    (first,) = started(scheduler).values()
    scheduler.finish(first, bytes([0]), ran_ns=30_000)
    scheduler.enqueue(item(1, kind="short"))
    (running,) = started(scheduler).values()
    scheduler.enqueue(item(2, {"CPU": 1, "memory": 0.5}))
    scheduler.enqueue(item(3, kind="short"))
    assert not started(scheduler)
    scheduler.finish(running, bytes([1]), ran_ns=30_000)
    assert list(started(scheduler)) == [2]


def test_a_lost_host_releases_its_allocations() -> None:
    scheduler = scheduler_with(a={"CPU": 1}, b={"CPU": 1})
    scheduler.enqueue(item(1))
    scheduler.enqueue(item(2))
    allocations = started(scheduler)
    lost = scheduler.remove_host("a")
    assert len(lost) == 1
    scheduler.release(lost[0])
    scheduler.enqueue(item(3))
    assert not started(scheduler)
    assert len(allocations) == 2


def test_a_combination_that_no_single_host_has_is_refused() -> None:
    scheduler = scheduler_with(a={"CPU": 8}, b={"CPU": 1, "GPU": 1})
    scheduler.check(task_shape({"CPU": 8}))
    with pytest.raises(InfeasibleError, match="No host has all"):
        scheduler.check(task_shape({"CPU": 2, "GPU": 1}))
    with pytest.raises(InfeasibleError, match=r"9 CPU was requested.*host, a, has 8 CPU"):
        scheduler.check(task_shape({"CPU": 9}))


def test_a_withdrawn_call_never_starts() -> None:
    scheduler = scheduler_with(a={"CPU": 1})
    scheduler.enqueue(item(1))
    scheduler.enqueue(item(2))
    assert scheduler.withdraw(bytes([1]))
    assert not scheduler.withdraw(bytes([1]))
    assert list(started(scheduler)) == [2]
