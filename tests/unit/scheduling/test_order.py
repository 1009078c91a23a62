"""The scheduling order: compared from left to right, as ADR 0016 says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.scheduling.order import Order
from jobs.scheduling.snapshot import DAY_S, QueuedJob, Share, Snapshot
from tests.unit.scheduling.shapes import shape

POOL = "backend:local"
NOW = 10 * DAY_S


def turns(*queued: QueuedJob, used: dict[int, float] | None = None, **fields: object) -> list[int]:
    """List the numbers of the jobs in scheduling order, counting the usage of each."""
    shares = {(POOL, project): Share(hours) for project, hours in (used or {}).items()}
    snapshot = Snapshot(queued, shares=shares, now_s=NOW, **fields)
    order = Order({POOL}, queued, snapshot)
    found = []
    for each in order:
        found.append(each.job_id)
        order.charge(each)
    return found


def job(number: int, **fields: int | float) -> QueuedJob:
    return QueuedJob(number, shape(), **{"since_s": NOW, **fields})


def test_all_of_a_higher_queue_come_first():
    assert turns(job(1), job(2, rank=5, priority=0), job(3)) == [2, 1, 3]


def test_the_project_that_has_used_least_comes_first_whatever_priority_others_write():
    first, second = job(1, project_id=1, priority=100), job(2, project_id=2, priority=0)
    assert turns(first, second, used={1: 5.0}) == [2, 1]


def test_a_weight_of_two_is_worth_two_turns():
    queued = tuple(job(number, project_id=number % 2) for number in range(9))
    shares = {(POOL, 0): Share(0.0, 2.0), (POOL, 1): Share(0.0, 1.0)}
    order = Order({POOL}, queued, Snapshot(queued, shares=shares, now_s=NOW))
    had = []
    for each in order:
        had.append(each.project_id)
        order.charge(each)
    assert had[:6].count(0) == 4


@pytest.mark.feature("P5.3")
def test_within_a_project_priority_counts_and_then_age():
    assert turns(job(3), job(1), job(2, priority=60)) == [2, 1, 3]


def test_who_has_waited_longer_than_the_patience_comes_before_priority_of_the_same_project():
    old = job(7, priority=0, since_s=NOW - DAY_S)
    assert turns(job(1, priority=90), old) == [7, 1]
    assert turns(job(1, priority=90), old, patience_s={POOL: 2 * DAY_S}) == [1, 7]


def test_patience_is_worth_nothing_against_another_project():
    old = job(1, project_id=1, since_s=0.0)
    assert turns(old, job(2, project_id=2), used={1: 5.0}) == [2, 1]


def test_projects_take_turns_also_while_they_only_wait():
    ones = [job(number, project_id=1) for number in (1, 2, 3)]
    twos = [job(number, project_id=2) for number in (4, 5, 6)]
    assert turns(*ones, *twos) == [1, 4, 2, 5, 3, 6]


jobs = st.lists(
    st.builds(
        QueuedJob,
        st.integers(1, 10_000),
        st.just(shape()),
        st.integers(0, 3),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(0, 1),
        st.sampled_from([NOW, NOW - 2 * DAY_S]),
    ),
    unique_by=lambda each: each.job_id,
    max_size=40,
)


@given(jobs)
def test_every_job_is_considered_exactly_once(queued):
    assert sorted(turns(*queued)) == sorted(each.job_id for each in queued)


@given(jobs)
def test_first_come_first_served_among_equals(queued):
    # Same queue, project, person, priority, and both or neither of them beyond the patience.
    place = {number: at for at, number in enumerate(turns(*queued))}
    alike: dict[tuple[object, ...], list[int]] = {}
    for each in queued:
        key = (each.rank, each.project_id, each.person_id, each.priority, each.since_s)
        alike.setdefault(key, []).append(each.job_id)
    for numbers in alike.values():
        ordered = sorted(numbers)
        assert [place[number] for number in ordered] == sorted(place[n] for n in numbers)
