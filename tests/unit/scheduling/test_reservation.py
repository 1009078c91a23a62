"""The reservation for the first waiting job: others fill the gaps without delaying it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduling.causes import NoRoom
from jobs.scheduling.plan import plan
from jobs.scheduling.reservation import reserve
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot, Start, Wait
from tests.unit.scheduling.shapes import machines, sentences, shape, started

HOUR = 3600.0
pytestmark = pytest.mark.feature("P5.1")


def snapshot_of(
    nodes: int, running: list[tuple[int, float | None]], queued: list[tuple[int, float | None]]
) -> Snapshot:
    """Make a snapshot of `nodes` from the (nodes, end) and (nodes, duration) of its jobs."""
    holds = [RunningJob(-number, shape(size), ends) for number, (size, ends) in enumerate(running)]
    waits = [
        QueuedJob(number, shape(size), duration_s=lasts)
        for number, (size, lasts) in enumerate(queued)
    ]
    used = sum(size for size, _ in running)
    return Snapshot(tuple(waits), tuple(holds), machines(local=nodes, used=used))


def test_a_short_job_fills_the_gap_before_a_big_one_that_waits():
    snapshot = snapshot_of(4, [(2, 2 * HOUR)], [(4, None), (1, HOUR), (1, 3 * HOUR), (1, None)])
    assert started(snapshot) == [1]
    said = sentences(snapshot)
    assert said[0] == "Needs 4 nodes; 2 of 4 are free on local."
    assert said[2] == said[3] == "Waits behind job 0, for which the next machines are reserved."


def test_a_long_job_starts_where_it_leaves_room_enough_for_the_big_one():
    assert started(snapshot_of(6, [(3, HOUR)], [(4, None), (2, None), (1, None)])) == [1]


def test_what_is_left_beside_the_big_one_is_given_once():
    assert started(snapshot_of(6, [(3, HOUR)], [(4, None), (1, None), (1, None), (1, None)])) == [
        1,
        2,
    ]


def test_the_expected_start_is_shown_where_something_bounds_it():
    (wait, *_) = plan(snapshot_of(4, [(2, 2 * HOUR), (2, HOUR)], [(3, None)]))
    assert isinstance(wait, Wait)
    assert isinstance(wait.cause, NoRoom)
    assert wait.cause.expected_s == 2 * HOUR
    (endless,) = plan(snapshot_of(4, [(2, None), (2, HOUR)], [(3, None)]))
    assert isinstance(endless, Wait)
    assert isinstance(endless.cause, NoRoom)
    assert endless.cause.expected_s is None


def test_jobs_that_the_plan_itself_starts_bound_the_moment_too():
    first, second = plan(snapshot_of(4, [], [(3, HOUR), (2, None)]))
    assert isinstance(first, Start)
    assert isinstance(second, Wait)
    assert isinstance(second.cause, NoRoom)
    assert second.cause.expected_s == HOUR


sizes = st.integers(1, 8)
lengths = st.one_of(st.none(), st.sampled_from([HOUR * hours for hours in range(1, 9)]))


@settings(max_examples=500)
@given(
    st.lists(st.tuples(sizes, lengths), max_size=4), st.lists(st.tuples(sizes, lengths), max_size=8)
)
def test_no_job_that_starts_behind_the_first_delays_it(running, queued):
    # The earliest start of the first waiting job is the same without the backfilled jobs.
    free = 3
    snapshot = snapshot_of(sum(size for size, _ in running) + free, running, queued)
    decisions = plan(snapshot)
    waits = [each for each in decisions if isinstance(each, Wait)]
    if not waits or not isinstance(waits[0].cause, NoRoom):
        return
    first = waits[0].job_id
    starts = [each.job_id for each in decisions if isinstance(each, Start)]
    before = [number for number in starts if number < first]
    assert moment(snapshot, first, starts) == moment(snapshot, first, before)


def moment(snapshot: Snapshot, first: int, started_jobs: list[int]) -> float:
    """Return when `first` surely fits, once these have started."""
    limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
    running = list(snapshot.running)
    for job in snapshot.queued:
        if job.job_id in started_jobs:
            limits["backend:local"].take(job.shape.demand)
            running.append(RunningJob(job.job_id, job.shape, job.duration_s))
    found = reserve(snapshot.queued[first], running, limits).at_s
    return found if found < math.inf else -1.0


@settings(max_examples=200)
@given(
    st.lists(st.tuples(sizes, st.sampled_from([HOUR, 2 * HOUR, 5 * HOUR])), min_size=1, max_size=12)
)
def test_where_all_jobs_are_bounded_each_starts_within_the_time_of_all_before_it(queued):
    # A machine of eight nodes, simulated: the n-th job starts within n times the longest.
    waiting = dict(enumerate(queued))
    running: dict[int, tuple[int, float]] = {}
    now, began = 0.0, {}
    while waiting:
        holds = [RunningJob(-n, shape(size), end) for n, (size, end) in running.items()]
        waits = [
            QueuedJob(n, shape(size), duration_s=lasts) for n, (size, lasts) in waiting.items()
        ]
        used = sum(size for size, _ in running.values())
        limits = machines(local=8, used=used)
        for number in started(Snapshot(tuple(waits), tuple(holds), limits, now_s=now)):
            size, lasts = waiting.pop(number)
            running[number], began[number] = (size, now + lasts), now
        now = min(end for _, end in running.values())
        running = {n: (size, end) for n, (size, end) in running.items() if end > now}
    for number, moment_s in began.items():
        assert moment_s <= number * 5 * HOUR
