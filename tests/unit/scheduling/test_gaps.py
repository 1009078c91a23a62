"""Gaps before a place that is held: the larger ones fill them first, in turn among their equals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.scheduling.gaps import largest_first
from jobs.scheduling.snapshot import DAY_S, QueuedJob, RunningJob, Snapshot
from tests.unit.scheduling.shapes import machines, sentences, shape, started

HOUR = 3600.0
# The first of all waits for eight nodes, of which three are free for the next two hours.
FIRST = QueuedJob(0, shape(8), priority=100, rank=9)
pytestmark = pytest.mark.feature("P5.1")


def behind_the_first(*waiting: QueuedJob, first: QueuedJob = FIRST, now_s: float = 0) -> Snapshot:
    runs = RunningJob(-1, shape(5), ends_s=now_s + 2 * HOUR)
    return Snapshot((first, *waiting), (runs,), machines(local=8, used=5), now_s=now_s)


def job(number: int, nodes: int, **asks: int) -> QueuedJob:
    return QueuedJob(number, shape(nodes), duration_s=HOUR, **asks)


def test_a_larger_job_fills_a_gap_before_smaller_ones_that_came_earlier():
    snapshot = behind_the_first(job(1, 1), job(2, 2), job(3, 3))
    assert started(snapshot) == [3]
    assert sentences(snapshot)[1] == "Waits behind job 0, which needs more room."


def test_what_the_larger_ones_leave_is_filled_by_the_smaller_ones():
    assert started(behind_the_first(job(1, 1), job(2, 1), job(3, 2))) == [1, 3]


def test_jobs_of_about_one_size_fill_a_gap_in_turn():
    nine_of_twenty = Snapshot(
        (QueuedJob(0, shape(20), rank=9), job(1, 8), job(2, 9)),
        (RunningJob(-1, shape(11), ends_s=2 * HOUR),),
        machines(local=20, used=11),
    )
    assert started(nine_of_twenty) == [1]


def test_nobody_waits_for_its_size_while_no_place_is_held():
    free = Snapshot((job(1, 1), job(2, 3)), (), machines(local=3))
    assert started(free) == [1]


def test_a_higher_queue_fills_gaps_first_whatever_the_size():
    assert started(behind_the_first(job(1, 1, rank=1), job(2, 3))) == [1]


def test_a_higher_priority_of_the_same_project_is_not_overtaken_by_a_larger_job():
    assert started(behind_the_first(job(1, 1, priority=60), job(2, 3))) == [1]


def test_priority_counts_nothing_between_projects():
    waiting = job(1, 1, priority=60, project_id=1), job(2, 3, project_id=2)
    assert started(behind_the_first(*waiting)) == [2]


def test_who_has_waited_longer_than_the_patience_is_not_overtaken_by_its_own_project():
    now_s = 2 * DAY_S
    old = job(1, 1)
    new = QueuedJob(2, shape(3), since_s=now_s - HOUR, duration_s=HOUR)
    # Younger ones of its own project would not be first.
    first = QueuedJob(0, shape(8), rank=9, since_s=0)
    assert started(behind_the_first(old, new, first=first, now_s=now_s)) == [1]


def test_whom_others_were_stopped_for_waits_for_nobodys_size():
    owed = QueuedJob(1, shape(1), duration_s=HOUR, is_owed=True)
    assert started(behind_the_first(owed, job(2, 3))) == [1]


several = st.lists(
    st.tuples(st.integers(1, 64), st.integers(0, 2), st.integers(0, 1), st.sampled_from([1, 2])),
    max_size=12,
)


@given(several)
def test_all_come_once_and_none_before_whom_it_must_not_overtake(asked):
    """Given in turn, as a plan does: by rank, and each project's jobs by priority."""
    waiting = [
        QueuedJob(0, shape(nodes), priority=priority, rank=rank, project_id=project)
        for nodes, priority, rank, project in asked
    ]
    waiting.sort(key=lambda each: (-each.rank, -each.priority if each.project_id == 1 else 0))
    found = list(largest_first(waiting, Snapshot((), now_s=-DAY_S * 2)))
    assert sorted(found) == list(range(len(waiting)))
    for first, second in itertools.combinations([waiting[place] for place in found], 2):
        assert first.rank >= second.rank
        if first.project_id == second.project_id == 1 and first.rank == second.rank:
            assert first.priority >= second.priority


@given(st.lists(st.integers(1, 1024), max_size=20))
def test_without_priorities_the_larger_class_comes_first_and_equals_come_in_turn(sizes):
    waiting = [QueuedJob(number, shape(nodes)) for number, nodes in enumerate(sizes)]
    found = [waiting[place] for place in largest_first(waiting, Snapshot(tuple(waiting)))]
    for first, second in itertools.pairwise(found):
        # A class is less than a factor of the root of two wide.
        assert first.shape.units * 2**0.5 > second.shape.units
        if first.shape.units == second.shape.units:
            assert first.job_id < second.job_id
