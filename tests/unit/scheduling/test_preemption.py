"""The choice of victims: what holds for every choice, and the order in a few plain cases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.scheduling.causes import Preempted
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.preemption import victims, without_leaving
from jobs.scheduling.snapshot import (
    Preempt,
    Preemption,
    QueuedJob,
    RunningJob,
    Snapshot,
    Start,
    Wait,
)

pytestmark = pytest.mark.feature("P5.4")
HOUR = 3600.0
NOMINAL = {1: 4.0, 2: 4.0, 3: 2.0}  # project 4 has none
ANYTHING = Preemption(reclaim=True, by_rank=True)


def shape_of(project: int, nodes: int, pool: str = "pool:a") -> Shape:
    quota = (f"project:{project}",) if project in NOMINAL else ()
    demand = (("jobs", 1.0), ("nodes", float(nodes)))
    return Shape(pool, "b", nodes, demand, (*quota, pool, "backend:b"), float(nodes))


def running(number: int, project: int, nodes: int, **fields) -> RunningJob:
    fields = {"is_preemptible": True, **fields}
    return RunningJob(number, shape_of(project, nodes), project_id=project, **fields)


def wants(project: int, nodes: int, **fields) -> QueuedJob:
    number = fields.pop("number", 100)
    return QueuedJob(number, shape_of(project, nodes), project_id=project, **fields)


def limits_of(holders: list[RunningJob], total: float) -> dict[str, Limit]:
    limits = {
        f"project:{project}": Limit(
            LimitKind.PROJECT, str(project), {"nodes": 99.0}, nominal={"nodes": nominal}
        )
        for project, nominal in NOMINAL.items()
    }
    for pool in ("pool:a", "pool:z"):
        limits[pool] = Limit(LimitKind.POOL, pool, {"nodes": total})
    limits["backend:b"] = Limit(LimitKind.BACKEND, "b", {"nodes": total})
    for each in holders:
        for key in each.shape.limits:
            if limits[key].kind.is_machines or each.counts_in_quotas:
                limits[key].take(each.shape.demand)
    return limits


def chosen(job: QueuedJob, holders: list[RunningJob], total: float, allowed=ANYTHING) -> list[int]:
    left = without_leaving(limits_of(holders, total), holders)
    return [each.job_id for each in victims(job, holders, left, allowed)]


def planned(holders: list[RunningJob], queued: list[QueuedJob], total: float) -> list:
    allowed = {"pool:a": ANYTHING}
    limits = limits_of(holders, total)
    return plan(Snapshot(tuple(queued), tuple(holders), limits, preemption=allowed))


@st.composite
def troubles(draw: st.DrawFn) -> tuple[QueuedJob, list[RunningJob], dict[str, Limit], Preemption]:
    """Draw a pool with jobs of four projects and three queues, and one job that waits."""
    holders = []
    for number in range(draw(st.integers(0, 9))):
        project, is_leaving = draw(st.integers(1, 4)), draw(st.integers(0, 5)) == 0
        is_left = draw(st.integers(0, 4)) == 0  # machines without a job
        holders.append(
            RunningJob(
                number,
                shape_of(
                    project,
                    draw(st.integers(1, 5)),
                    draw(st.sampled_from(["pool:a"] * 4 + ["pool:z"])),
                ),
                began_s=float(draw(st.integers(0, 3))),
                project_id=project,
                rank=draw(st.integers(0, 2)),
                is_preemptible=not is_left and draw(st.integers(0, 3)) > 0,
                is_leaving=is_leaving,
                counts_in_quotas=not is_left and (not is_leaving or draw(st.booleans())),
            )
        )
    used = sum(each.shape.num_nodes for each in holders)
    limits = limits_of(holders, float(used + draw(st.integers(0, 3))))
    job = wants(draw(st.integers(1, 4)), draw(st.integers(1, 9)), rank=draw(st.integers(0, 2)))
    return job, holders, limits, Preemption(draw(st.booleans()), draw(st.booleans()))


def fits(job: QueuedJob, holders: list[RunningJob], without: set[int], total: float) -> bool:
    left = [each for each in holders if each.job_id not in without and not each.is_leaving]
    limits = limits_of(left, total)
    return not any(limits[key].lacks(job.shape.demand) for key in ("pool:a", "backend:b"))


@given(troubles())
def test_no_victim_could_have_been_spared(trouble):
    job, holders, limits, allowed = trouble
    total = limits["backend:b"].caps["nodes"]
    taken = victims(job, holders, without_leaving(limits, holders), allowed)
    numbers = {each.job_id for each in taken}
    if taken:
        assert fits(job, holders, numbers, total)
        assert not fits(job, holders, set(), total)
    for each in taken:
        assert not fits(job, holders, numbers - {each.job_id}, total)


@given(troubles())
def test_only_those_are_stopped_who_may_be_and_by_a_right_that_the_pool_gives(trouble):
    job, holders, limits, allowed = trouble
    chosen = victims(job, holders, without_leaving(limits, holders), allowed)
    assert allowed.is_on or not chosen
    for each in chosen:
        assert each.is_preemptible
        assert not each.is_leaving
        assert each.shape.pool == job.shape.pool
        by_rank = allowed.by_rank and each.rank < job.rank
        reclaimed = allowed.reclaim and each.project_id != job.project_id
        assert by_rank or (reclaimed and each.rank <= job.rank)


@pytest.mark.feature("P5.1")
@given(troubles())
def test_only_borrowers_are_reclaimed_from_and_only_for_who_stays_within_its_part(trouble):
    # The last victim of a project is stopped while the project still borrows.
    job, holders, limits, _ = trouble
    left = without_leaving(limits, holders)
    taken = victims(job, holders, left, Preemption(reclaim=True))
    if taken:
        used = left[f"project:{job.project_id}"].used.get("nodes", 0.0)
        assert used + job.shape.num_nodes <= NOMINAL[job.project_id]
    for project in {each.project_id for each in taken}:
        mine = [each.shape.num_nodes for each in taken if each.project_id == project]
        beyond = left[f"project:{project}"].used["nodes"] - NOMINAL[project]
        assert beyond > sum(mine) - max(mine)


@given(troubles())
def test_no_job_is_stopped_where_all_together_were_not_enough(trouble):
    job, holders, limits, _ = trouble
    total = limits["backend:b"].caps["nodes"]
    lower = {each.job_id for each in holders if each.is_preemptible and each.rank < job.rank}
    lower &= {each.job_id for each in holders if each.shape.pool == job.shape.pool}
    left = without_leaving(limits, holders)
    taken = victims(job, holders, left, Preemption(by_rank=True))
    needs = not fits(job, holders, set(), total)
    assert bool(taken) == (needs and fits(job, holders, lower, total))


@given(troubles())
def test_a_choice_is_the_same_whatever_the_order_and_leaves_what_it_looked_at(trouble):
    job, holders, limits, allowed = trouble
    left = without_leaving(limits, holders)
    before = {key: dict(limit.used) for key, limit in left.items()}
    taken = victims(job, holders, left, allowed)
    assert taken == victims(job, holders[::-1], left, allowed)
    assert {key: limit.used for key, limit in left.items()} == before


@given(troubles())
def test_passes_in_a_row_while_they_wind_down_stop_no_other_job(trouble):
    job, holders, limits, allowed = trouble
    stopped = {
        each.job_id for each in victims(job, holders, without_leaving(limits, holders), allowed)
    }
    going = [
        replace(each, is_leaving=True, stopped_for=100) if each.job_id in stopped else each
        for each in holders
    ]
    if stopped:
        assert victims(job, going, without_leaving(limits, going), allowed) == []


def test_the_lowest_queue_goes_first_then_who_borrows_most_then_who_came_last():
    low = running(1, 1, 1, rank=0, began_s=1.0)
    middle = running(2, 1, 1, rank=1, began_s=9.0)
    assert chosen(wants(4, 1, rank=2), [middle, low], 2) == [1]
    little, much = running(1, 1, 5), running(2, 3, 5)
    assert chosen(wants(2, 4), [little, much], 10) == [2]
    old, new = running(1, 1, 3, began_s=1.0), running(2, 1, 3, began_s=2.0)
    assert chosen(wants(2, 3), [old, new], 6) == [2]


def test_a_first_victim_is_spared_where_a_bigger_one_is_enough():
    small, big = running(1, 4, 1, began_s=2.0), running(2, 4, 4, began_s=1.0)
    assert chosen(wants(4, 4, rank=1), [small, big], 5) == [2]


@pytest.mark.feature("P5.1")
def test_a_project_takes_back_its_part_and_no_more():
    borrower = [running(number, 1, 2, began_s=float(number)) for number in range(4)]
    assert chosen(wants(2, 4), borrower, 8) == [3, 2]
    assert chosen(wants(2, 5), borrower, 8) == []
    assert chosen(wants(4, 2), borrower, 8) == []
    assert chosen(wants(2, 4), borrower, 8, Preemption()) == []


def test_a_plan_stops_victims_for_the_first_waiting_job_and_names_them_to_it():
    holders = [running(7, 1, 4, rank=0), running(8, 1, 2, rank=0, is_preemptible=False)]
    first, second = planned(holders, [wants(4, 3, rank=1), wants(4, 1, number=101)], 6)
    assert isinstance(first, Preempt)
    assert first.victims == (7,)
    reported = "Waits for 4 nodes of job 7, which is being stopped for it."
    assert first.cause.sentence == reported
    assert isinstance(second, Wait)
    leaving = [replace(holders[0], is_leaving=True, stopped_for=100), holders[1]]
    again, *_ = planned(leaving, [wants(4, 3, rank=1)], 6)
    assert isinstance(again, Wait)
    assert again.cause.sentence == reported


@pytest.mark.parametrize("kind", [LimitKind.PERSON, LimitKind.QUEUE, LimitKind.GROUP])
def test_others_are_stopped_also_for_a_job_under_a_quota_that_is_not_of_its_project(kind):
    holders = [running(7, 1, 4, rank=0)]
    asks = shape_of(4, 2)
    job = QueuedJob(100, replace(asks, limits=("quota", *asks.limits)), project_id=4, rank=1)
    limits = {**limits_of(holders, 4), "quota": Limit(kind, "ana", {"jobs": 9.0})}
    (first,) = plan(Snapshot((job,), tuple(holders), limits, preemption={"pool:a": ANYTHING}))
    assert isinstance(first, Preempt)
    assert first.victims == (7,)


def test_no_job_fills_the_free_part_of_a_slot_for_which_others_are_stopped():
    # The victim would otherwise run for five hours more: a job of one hour would pass.
    holders = [running(7, 1, 2, ends_s=5 * HOUR)]
    short = wants(4, 2, number=101, duration_s=HOUR)
    first, second = planned(holders, [wants(4, 4, rank=1), short], 4)
    assert isinstance(first, Preempt)
    assert isinstance(second, Wait)


def test_what_was_given_up_goes_to_the_one_it_was_given_up_for():
    # The victim's project has the smaller share, and would be first.
    victim = wants(1, 2, number=7, stopped_for=100)
    claiming = wants(2, 2, number=100, has_claim=True)
    first, second = planned([], [victim, claiming], 2)
    assert first == Start(100)
    assert isinstance(second, Wait)
    assert isinstance(second.cause, Preempted)
    assert (
        second.cause.sentence
        == "Was preempted by job 100. Needs 2 nodes; 0 of 2 are free on pool:a."
    )
