"""Warm clusters in a plan: who takes one, whose machines are free, and which ones are ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.scheduling.causes import ClusterEnding
from jobs.scheduling.limits import Limit, LimitKind
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Decision,
    Evict,
    NamedCluster,
    QueuedJob,
    Refuse,
    RunningJob,
    Snapshot,
    Start,
    Wait,
    WarmCluster,
)
from tests.each_case import check_each
from tests.unit.scheduling.shapes import machines, sentences, shape, started

pytestmark = [pytest.mark.feature("S2.8"), pytest.mark.feature("P5.1")]


def job(number: int = 1, nodes: int = 2, project: int = 1, **fields: Any) -> QueuedJob:
    return QueuedJob(number, shape(nodes, "fake"), project_id=project, **fields)


def warm(name: str = "mp-a", nodes: int = 2, **fields: Any) -> WarmCluster:
    given = {"project_id": 1, "fingerprint": "f", "shape": shape(nodes, "fake"), **fields}
    return WarmCluster(name, **given)


def decided(
    *queued: QueuedJob, total: int, used: int = 0, reusing: str = "f", **fields: Any
) -> list[Decision]:
    """Plan; every job of project 1 requests warm clusters."""
    fingerprints = {each.job_id: reusing for each in queued if each.project_id == 1}
    limits = machines(fake=total, used=used)
    return plan(Snapshot(queued, limits=limits, fingerprints=fingerprints, **fields))


def test_a_job_that_starts_takes_a_matching_warm_cluster_and_no_second_one_takes_it():
    assert decided(job(1), job(2), total=4, warm=(warm(),)) == [Start(1, "mp-a"), Start(2)]


def test_a_warm_cluster_that_does_not_match_is_taken_by_no_job():
    cases: dict[str, dict[str, Any]] = {
        "of another project": {"project_id": 2},
        "of other machines": {"fingerprint": "g"},
        "of another pool": {"shape": shape(2, "fake", pool="p")},
        "being ended": {"is_ending": True},
    }

    def check(_: str, fields: dict[str, Any]) -> None:
        assert decided(job(), total=9, warm=(warm(**fields),)) == [Start(1)]

    check_each(cases.items(), check)


def test_the_machines_of_an_idle_cluster_are_free_and_it_is_ended_for_a_job_that_needs_them():
    (decision,) = decided(job(nodes=2, project=2), total=2, warm=(warm(),))
    assert decision == Evict(1, ("mp-a",), ClusterEnding(2))
    said = "Waits for 2 nodes of warm clusters, which are being ended."
    assert decision.cause.sentence == said


def test_no_cluster_is_ended_while_machines_enough_are_free_or_will_be():
    assert decided(job(project=2), total=4, warm=(warm(),)) == [Start(1)]
    ending = warm("mp-b", is_ending=True)
    (waits,) = decided(job(project=2), total=4, warm=(warm(), ending))
    assert waits == Wait(1, ClusterEnding(2))


def test_the_last_idle_clusters_are_ended_and_none_that_could_be_spared():
    idle = warm("mp-a", 1), warm("mp-b", 3), warm("mp-c", 1)
    (decision,) = decided(job(nodes=3, project=2), total=5, warm=idle)
    assert isinstance(decision, Evict)
    assert decision.clusters == ("mp-b",)


def test_a_cluster_that_a_later_job_takes_is_ended_for_no_earlier_one():
    idle = warm("mp-a"), warm("mp-b", project_id=3)
    first, second = decided(job(1, project=2), job(2), total=4, warm=idle)
    assert first == Evict(1, ("mp-b",), ClusterEnding(2))
    assert second == Start(2, "mp-a")


def test_no_job_passes_another_since_its_project_keeps_a_cluster():
    # Four nodes, of which two are idle: the first needs all, and the second has a cluster.
    runs = RunningJob(7, shape(2, "fake"), 3600.0)
    queued = job(1, nodes=4, project=2), job(2)
    first, second = decided(*queued, total=4, used=2, running=(runs,), warm=(warm(),))
    assert isinstance(first, Wait)
    assert isinstance(second, Wait)
    assert second.cause.sentence == "Waits behind job 1, for which the next machines are reserved."


def test_a_stopped_cluster_needs_machines_and_others_are_ended_for_it():
    off = warm("mp-a", is_on=False)
    assert decided(job(), total=2, warm=(off,)) == [Start(1, "mp-a")]
    assert decided(job(), total=2, warm=(warm("mp-b", project_id=2), off)) == [
        Evict(1, ("mp-b",), ClusterEnding(2))
    ]
    assert isinstance(decided(job(), total=2, used=1, warm=(off,))[0], Wait)


def test_no_cluster_is_ended_in_a_pool_where_machines_fail_to_be_given_back():
    (waits,) = decided(job(project=2), total=2, warm=(warm(),), stuck={"backend:fake"})
    assert waits == Wait(1, ClusterEnding(2))


def names(number: int, problem: str = "", *, is_gone: bool = False) -> QueuedJob:
    """Make a job that names a cluster, which is up: the job needs no machines."""
    named = replace(shape(2, "fake", limits=("quota",)), limits=("quota",))
    return QueuedJob(number, named, cluster=NamedCluster("mp-n", problem, is_gone))


def naming(*queued: QueuedJob, jobs: float = 9.0) -> Snapshot:
    limits = {**machines(fake=2, used=2), "quota": Limit(LimitKind.PROJECT, "rl", {"jobs": jobs})}
    return Snapshot(queued, limits=limits)


def test_jobs_that_name_a_cluster_take_it_one_after_the_other_in_order():
    plans = naming(names(1), names(2))
    assert plan(plans)[0] == Start(1, "mp-n")
    assert sentences(plans) == {2: "Waits for cluster mp-n, on which job 1 runs."}


def test_a_job_waits_for_the_cluster_that_it_names_and_for_its_quotas():
    assert sentences(naming(names(1, "It is busy."))) == {1: "It is busy."}
    quota = naming(names(1), jobs=0.0)
    assert started(quota) == []


def test_a_job_fails_whose_cluster_is_gone():
    assert plan(naming(names(1, "It no longer exists.", is_gone=True))) == [
        Refuse(1, "It no longer exists.")
    ]
