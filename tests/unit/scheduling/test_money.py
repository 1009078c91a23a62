"""Money in plans: what starts is counted at its price, and nothing starts without one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.scheduling.causes import NoPrice
from jobs.scheduling.limits import USD_PER_HOUR, Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot, Start, Wait
from tests.unit.scheduling.shapes import machines, sentences, shape, started

pytestmark = pytest.mark.feature("P5.1")


def quota(cap: float, used: float = 0.0, kind: LimitKind = LimitKind.PROJECT) -> dict[str, Limit]:
    return {"quota:1": Limit(kind, "rl", {USD_PER_HOUR: cap}, {USD_PER_HOUR: used})}


def job(number: int, usd: float | None, problem: str = "", **fields: Any) -> QueuedJob:
    requested = shape(limits=("quota:1",))
    priced = requested.unpriced_for(problem) if usd is None else requested.priced(usd)
    return QueuedJob(number, priced, **fields)


def snapshot(*jobs: QueuedJob, limits: dict[str, Limit], **fields: Any) -> Snapshot:
    return Snapshot(jobs, limits={**limits, **machines(local=99)}, **fields)


def test_two_that_start_in_one_plan_both_count():
    queue = snapshot(job(1, 8.0), job(2, 8.0), job(3, 8.0), limits=quota(20.0))
    assert started(queue) == [1, 2]
    assert sentences(queue) == {3: "Needs $8.00 an hour; $4.00 of $20.00 is left in project rl."}


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (LimitKind.PROJECT, "in project rl"),
        (LimitKind.QUEUE, "in queue rl"),
        (LimitKind.PERSON, "for rl"),
    ],
)
def test_the_sentence_names_the_remainder_and_its_owner(kind, where):
    queue = snapshot(job(1, 8.0), limits=quota(40.0, used=45.5, kind=kind))
    assert sentences(queue) == {1: f"Needs $8.00 an hour; $0.00 of $40.00 is left {where}."}


def test_prices_that_add_up_to_the_quota_fit_it_in_spite_of_rounding():
    jobs = [job(number, 0.1) for number in range(4)]
    assert len(started(snapshot(*jobs, limits=quota(0.3)))) == 3


def test_machines_that_cost_nothing_start_also_where_all_is_spent():
    assert started(snapshot(job(1, 0.0), limits=quota(0.0, used=1.0))) == [1]


def test_a_job_without_a_price_waits_and_holds_back_no_other_job():
    queue = snapshot(job(1, None), job(2, None, "No such GPU."), job(3, 1.0), limits=quota(2.0))
    assert started(queue) == [3]
    assert sentences(queue) == {
        1: "Its price is being requested.",
        2: "Its price, which a quota counts, is being requested again. No such GPU.",
    }


def test_no_job_starts_while_one_that_runs_in_the_same_quota_has_no_price():
    limits = quota(40.0)
    limits["quota:1"].unpriced = 7
    queue = snapshot(job(1, 1.0), QueuedJob(2, shape()), limits=limits)
    assert started(queue) == [2]
    reported = "The price of job 7, which counts in the same quota, is being requested."
    assert sentences(queue) == {1: reported}


PRICES = st.sampled_from([None, 0.0, 0.1, 0.35, 1.2, 3.673, 12.000001])


@st.composite
def markets(draw: st.DrawFn) -> Snapshot:
    """Draw a snapshot with quotas of money of two projects and a queue."""
    limits = machines(local=draw(st.integers(0, 30)))
    for key, kind in (
        ("project:1", LimitKind.PROJECT),
        ("project:2", LimitKind.PROJECT),
        ("queue", LimitKind.QUEUE),
    ):
        limits[key] = Limit(kind, key, {USD_PER_HOUR: float(draw(st.integers(0, 30)))})

    def requested(project: int) -> Shape:
        keys = (f"project:{project}", *(["queue"] if draw(st.booleans()) else []))
        usd, plain = draw(PRICES), shape(draw(st.integers(1, 3)), limits=keys)
        return plain.unpriced_for("") if usd is None else plain.priced(usd)

    running = []
    for number in range(draw(st.integers(0, 3))):
        there = requested(1)
        for key in there.limits:
            limits[key].take(there.demand)
        running.append(RunningJob(-number, there))
    queued = []
    for number in range(draw(st.integers(0, 12))):
        project = draw(st.integers(1, 2))
        queued.append(QueuedJob(number, requested(project), project_id=project))
    return Snapshot(tuple(queued), tuple(running), limits)


@given(markets())
def test_no_quota_of_money_is_ever_exceeded(market):
    jobs = {each.job_id: each for each in market.queued}
    starts = [jobs[each.job_id] for each in plan(market) if isinstance(each, Start)]
    for key, limit in market.limits.items():
        taken = [each.shape.amount(USD_PER_HOUR) for each in starts if key in each.shape.limits]
        if any(taken) and USD_PER_HOUR in limit.caps:
            total = limit.used.get(USD_PER_HOUR, 0.0) + sum(taken)
            assert round(total, 6) <= limit.caps[USD_PER_HOUR]


@given(markets())
def test_nothing_starts_without_a_price(market):
    jobs = {each.job_id: each for each in market.queued}
    for each in plan(market):
        here = jobs[each.job_id]
        if isinstance(each, Start):
            assert here.shape.unpriced is None
        if isinstance(each, Wait) and isinstance(each.cause, NoPrice):
            assert here.shape.unpriced is not None
