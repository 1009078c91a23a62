"""A plan gives kept clusters back before it stops jobs, and only those that nobody needs."""

from __future__ import annotations

import pytest

from jobs.scheduling.causes import NoRoom
from jobs.scheduling.kept import Guest, KeptCluster, Wish
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Preempt, Preemption, RunningJob, Snapshot, Start, Wait
from tests.unit.scheduling.test_preemption import ANYTHING, limits_of, planned, running, wants

pytestmark = [pytest.mark.feature("P5.4"), pytest.mark.feature("S2.8")]


def kept(number: int, nodes: int, **fields) -> RunningJob:
    fields = {"kept": f"c{number}", "is_preemptible": False, "counts_in_quotas": False, **fields}
    return running(number, 1, nodes, **fields)


def warm(number: int, nodes: int) -> KeptCluster:
    return KeptCluster(f"c{number}", 1, "b", nodes, "same")


def test_a_plan_gives_kept_clusters_back_first_and_stops_jobs_for_the_rest_alone():
    holders = [running(7, 1, 2), running(8, 1, 2, began_s=1.0), kept(9, 2)]
    (only,) = planned(holders, [wants(4, 2, rank=1)], 6)
    assert isinstance(only, Preempt)
    assert (only.victims, only.kept) == ((), ("c9",))
    assert isinstance(only.cause, NoRoom)
    (both,) = planned(holders, [wants(4, 4, rank=1)], 6)
    assert isinstance(both, Preempt)
    assert (both.victims, both.kept) == ((8,), ("c9",))
    assert both.cause.sentence == "Waits for 2 nodes of job 8, which is being stopped for it."


@pytest.mark.parametrize("is_on", [True, False])
def test_a_pool_that_stops_nobody_gives_no_kept_cluster_back(is_on):
    holders = [kept(9, 2)]
    snapshot = Snapshot(
        (wants(4, 2),),
        tuple(holders),
        limits_of(holders, 2),
        preemption={"pool:a": Preemption(reclaim=is_on)},
    )
    (decision,) = plan(snapshot)
    assert isinstance(decision, Preempt if is_on else Wait)


@pytest.mark.parametrize("named", [True, False])
def test_what_is_given_back_takes_no_job_and_what_a_job_names_is_not_given_back(named):
    holders = [kept(9, 2)]
    wish = Wish(1, 2, 1, fingerprint="" if named else "same", cluster="c9" if named else "")
    later = wants(1, 2, number=101, wish=wish)
    snapshot = Snapshot(
        (wants(4, 2, rank=1), later),
        tuple(holders),
        limits_of(holders, 2),
        preemption={"pool:a": ANYTHING},
        kept=(warm(9, 2),),
    )
    first, second = plan(snapshot)
    if named:
        assert isinstance(first, Wait)
        assert second == Start(101, "c9")
    else:
        assert isinstance(first, Preempt)
        assert isinstance(second, Wait)


def test_a_cluster_that_a_job_has_just_got_is_not_given_back():
    holders = [kept(9, 2)]
    guest = wants(1, 2, number=99, rank=2, wish=Wish(1, 2, 1, fingerprint="same"))
    snapshot = Snapshot(
        (guest, wants(4, 2, rank=1)),
        tuple(holders),
        limits_of(holders, 2),
        preemption={"pool:a": ANYTHING},
        kept=(warm(9, 2),),
    )
    first, second = plan(snapshot)
    assert first == Start(99, "c9")
    assert isinstance(second, Wait)


@pytest.mark.parametrize("by", ["job that waits", "job that cannot start yet", "nobody"])
def test_the_job_on_a_cluster_that_a_queued_job_names_is_not_stopped(by):
    """The cluster would go with it, and who waits for it would fail."""
    holders = [running(7, 1, 2, cluster="c7")]
    urgent = wants(4, 2, rank=1)
    named = wants(1, 2, number=101, wish=Wish(1, 2, 1, cluster="c7"))
    busy = KeptCluster("c7", 1, "b", 2, "same", guests=[Guest(7, 1, wants_gpus=False)])
    snapshot = Snapshot(
        (urgent, named) if by == "job that waits" else (urgent,),
        tuple(holders),
        limits_of(holders, 2),
        preemption={"pool:a": ANYTHING},
        kept=(busy,),
        named={"c7"} if by == "job that cannot start yet" else (),
    )
    first, *rest = plan(snapshot)
    assert isinstance(first, Preempt if by == "nobody" else Wait)
    assert all(isinstance(each, Wait) for each in rest)
