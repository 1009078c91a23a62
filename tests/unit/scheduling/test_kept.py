"""The plan with clusters that were kept: who goes onto one, and what that takes of the room."""

from __future__ import annotations

from typing import Any

from jobs.scheduling.kept import Guest, KeptCluster, Wish
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Decision,
    QueuedJob,
    Refuse,
    RunningJob,
    Snapshot,
    Start,
    Wait,
)
from tests.unit.scheduling.shapes import machines, shape

FULL = machines(fake=2, used=2, kept=2)


def job(number: int = 1, **wish: Any) -> QueuedJob:
    asked = {"project_id": 1, "num_nodes": 2, "port": 22_222, **wish}
    return QueuedJob(number, shape(asked["num_nodes"], "fake"), wish=Wish(**asked))


def cluster(name: str = "mp-a", **fields: Any) -> KeptCluster:
    given = {"project_id": 1, "backend_name": "fake", "num_nodes": 2, "fingerprint": "f", **fields}
    return KeptCluster(name, **given)


def decided(*queued: QueuedJob, kept: Any = (), room: Any = None) -> list[Decision]:
    return plan(Snapshot(queued, limits=FULL if room is None else room, kept=tuple(kept)))


def why(decision: Decision) -> str:
    assert isinstance(decision, Wait)
    return decision.cause.sentence


def test_a_job_starts_on_a_cluster_that_fits_although_nothing_is_free():
    assert decided(job(fingerprint="f"), kept=[cluster()]) == [Start(1, "mp-a")]


def test_a_cluster_is_given_to_one_job_only():
    first, second = decided(job(1, fingerprint="f"), job(2, fingerprint="f"), kept=[cluster()])
    assert first == Start(1, "mp-a")
    assert isinstance(second, Wait)


def test_a_job_that_waits_is_told_how_many_nodes_are_kept():
    (wait,) = decided(job(fingerprint="other"), kept=[cluster()])
    said = "Needs 2 nodes; 0 of 2 are free on fake. 2 nodes kept for a next job."
    assert why(wait) == said


def test_a_cluster_of_another_project_or_of_other_machines_or_in_use_is_left_alone():
    used = [Guest(9, 22_222, wants_gpus=False)]
    for unfit in (
        cluster(project_id=2),
        cluster(fingerprint="g"),
        cluster(guests=used),
        cluster(is_ready=False),
    ):
        assert isinstance(decided(job(fingerprint="f"), kept=[unfit])[0], Wait)


def test_nobody_who_waits_for_room_is_overtaken_by_taking_what_was_kept():
    waiting = QueuedJob(1, shape(1, "fake"))
    _, second = decided(waiting, job(2, fingerprint="f"), kept=[cluster()])
    assert second == Start(2, "mp-a")


def test_machines_that_are_off_take_room_when_they_are_switched_on():
    off = cluster(is_on=False)
    assert isinstance(decided(job(fingerprint="f"), kept=[off])[0], Wait)
    room = machines(fake=3)
    queued = (job(1, fingerprint="f"), job(2))
    first, second = decided(*queued, kept=[off], room=room)
    assert first == Start(1, "mp-a")
    assert why(second) == "Needs 2 nodes; 1 of 3 is free on fake."


def test_a_job_goes_onto_the_cluster_it_names_on_some_of_its_nodes():
    assert decided(job(cluster="mp-a", num_nodes=1), kept=[cluster()]) == [Start(1, "mp-a")]


def test_a_named_cluster_takes_several_jobs_whose_ports_lie_apart():
    guest = [Guest(9, 22_222, wants_gpus=False)]
    near, far = job(cluster="mp-a", port=22_223), job(cluster="mp-a", port=22_224)
    (wait,) = decided(near, kept=[cluster(guests=guest)])
    assert "job 9 is on it with port 22222" in why(wait)
    assert decided(far, kept=[cluster(guests=guest)]) == [Start(1, "mp-a")]


def test_two_jobs_that_want_gpus_take_turns_on_a_named_cluster():
    guest = [Guest(9, 30_000, wants_gpus=True)]
    (wait,) = decided(job(cluster="mp-a", wants_gpus=True), kept=[cluster(guests=guest)])
    assert why(wait) == "Waits for the GPUs of cluster mp-a, which job 9 has."


def test_a_job_whose_named_cluster_is_gone_or_anothers_never_starts():
    assert isinstance(decided(job(cluster="mp-a"))[0], Refuse)
    assert isinstance(decided(job(cluster="mp-a"), kept=[cluster(project_id=2)])[0], Refuse)
    assert isinstance(decided(job(cluster="mp-a", num_nodes=3), kept=[cluster()])[0], Refuse)


def test_what_is_switched_on_takes_its_gpus_of_the_pool():
    off = cluster(is_on=False)
    gpus = (("jobs", 1.0), ("nodes", 2.0), ("gpus", 16.0))
    limits = {"pool:p": Limit(LimitKind.POOL, "p", {"gpus": 24.0}, {"gpus": 12.0})}
    asked = Shape("pool:p", "fake", 2, gpus, ("pool:p",))
    wish = Wish(1, 2, 22_222, fingerprint="f")
    (decision,) = plan(Snapshot((QueuedJob(1, asked, wish=wish),), limits=limits, kept=(off,)))
    assert isinstance(decision, Wait)
    limits["pool:p"].used["gpus"] = 8.0
    (decision,) = plan(Snapshot((QueuedJob(1, asked, wish=wish),), limits=limits, kept=(off,)))
    assert decision == Start(1, "mp-a")


def test_what_is_switched_on_does_not_take_the_place_of_who_waits_before():
    off = cluster(is_on=False)
    first = QueuedJob(1, shape(4, "fake"))
    later = job(2, fingerprint="f")
    decisions = decided(first, later, kept=[off], room=machines(fake=4, used=2))
    assert [type(each) for each in decisions] == [Wait, Wait]


def test_a_job_that_waits_for_a_named_cluster_holds_back_nobody():
    room = machines(fake=4, used=2)
    busy = cluster(guests=[Guest(9, 22_222, wants_gpus=False)])
    named, other = job(1, cluster="mp-a"), QueuedJob(2, shape(2, "fake"))
    assert decided(named, other, kept=[busy], room=room)[1] == Start(2)


def test_planning_changes_nothing_of_what_it_looked_at():
    kept = cluster()
    decided(job(fingerprint="f"), kept=[kept])
    assert kept.guests == []


def test_a_job_goes_onto_clusters_of_its_own_pool_only():
    there = cluster(pool="pool:train")
    assert isinstance(decided(job(fingerprint="f", pool="pool:own"), kept=[there])[0], Wait)
    same = job(fingerprint="f", pool="pool:train")
    assert decided(same, kept=[there]) == [Start(1, "mp-a")]
    (wait,) = decided(job(cluster="mp-a", pool="backend:fake"), kept=[there])
    said = "Cluster mp-a is one of pool train, and the job's queue has machines of no pool."
    assert why(wait) == said


def test_switching_on_takes_all_that_the_cluster_has_whatever_the_job_asks_for():
    has = (("nodes", 2.0), ("gpus", 16.0))
    off = cluster(is_on=False, machines=has)
    assert off.switched_on(shape(1, "fake")) == has
    assert cluster(machines=has).switched_on(shape(1, "fake")) == ()


def test_a_place_is_held_for_a_job_whose_named_cluster_is_off_and_has_no_room():
    """Whoever comes later would else take what gets free, for as long as others come."""
    off = cluster(is_on=False)
    running = RunningJob(7, shape(2, "fake"), ends_s=3600.0)
    named = job(1, cluster="mp-a")
    (waits,) = plan(Snapshot((named,), (running,), machines(fake=3, used=2), kept=(off,)))
    assert why(waits) == "Needs 2 nodes; 1 of 3 is free on fake."
    small = QueuedJob(2, shape(1, "fake"), project_id=2)
    limits = machines(fake=2, used=1)
    holds = RunningJob(7, shape(1, "fake"), ends_s=3600.0)
    _, behind = plan(Snapshot((named, small), (holds,), limits, kept=(off,)))
    assert why(behind) == "Waits behind job 1, which needs more room."


def test_a_named_cluster_that_is_off_waits_behind_the_place_of_another():
    off = cluster(is_on=False)
    running = RunningJob(7, shape(2, "fake"), ends_s=3600.0)
    first = QueuedJob(1, shape(4, "fake"), rank=1)
    named = job(2, cluster="mp-a")
    (_, waits) = plan(Snapshot((first, named), (running,), machines(fake=4, used=2), kept=(off,)))
    assert why(waits) == "Waits behind job 1, which needs more room."
