"""Properties of every plan with warm clusters: who starts, and how many machines are up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduling.causes import ClusterEnding
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Evict,
    QueuedJob,
    RunningJob,
    Snapshot,
    Start,
    WarmCluster,
)

pytestmark = [pytest.mark.feature("S2.8"), pytest.mark.feature("P5.1")]


def requested(project: int, pool: str, nodes: int) -> Shape:
    demand = (("jobs", 1.0), ("nodes", float(nodes)))
    return Shape(pool, "b", nodes, demand, (f"project:{project}", pool, "backend:b"))


PLACES = ("pool:a", "pool:z", "backend:b")
projects = st.integers(1, 2)
shapes = st.builds(requested, projects, st.sampled_from(PLACES[:2]), st.integers(1, 3))
ends = st.sampled_from([None, 3600.0])
moments = st.sampled_from([None, 600.0])


@st.composite
def warm_clusters(draw: st.DrawFn) -> list[WarmCluster]:
    """Draw idle, stopped and ending warm clusters."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        state, own = draw(st.sampled_from(["on", "on", "off", "end"])), draw(shapes)
        project = int(own.limits[0].removeprefix("project:"))
        is_on, is_ending = state != "off", state == "end"
        found.append(WarmCluster(f"c{number}", project, f"{own.num_nodes}", own, is_on, is_ending))
    return sorted(found, key=lambda each: not each.is_on)


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """Draw two pools of a backend, running, waiting and reusing jobs, and warm clusters."""
    running = [RunningJob(-number, draw(shapes), draw(ends)) for number in range(1, 4)]
    clusters = draw(warm_clusters())
    up = [each.shape for each in running] + [each.shape for each in clusters if each.is_on]
    limits = {}
    for key in PLACES:
        most = sum(each.num_nodes for each in up if key in each.limits) + draw(st.integers(0, 3))
        used = sum(each.shape.num_nodes for each in running if key in each.shape.limits)
        kind = LimitKind(key.partition(":")[0])
        limits[key] = Limit(kind, key, {"nodes": float(most)}, {"nodes": float(used)})
    for project in (1, 2):
        cap = {"nodes": float(draw(st.sampled_from([2, 99])))}
        limits[f"project:{project}"] = Limit(LimitKind.PROJECT, "p", cap)
    queued = []
    for number in range(1, 1 + draw(st.integers(0, 9))):
        own, rank, lasts_s = draw(shapes), draw(st.integers(0, 1)), draw(moments)
        project = int(own.limits[0].removeprefix("project:"))
        queued.append(QueuedJob(number, own, project_id=project, rank=rank, duration_s=lasts_s))
    reusing = [each for each in queued if draw(st.booleans())]
    return Snapshot(
        tuple(queued),
        tuple(running),
        limits,
        warm=tuple(clusters),
        fingerprints={each.job_id: f"{each.shape.num_nodes}" for each in reusing},
    )


@settings(max_examples=300, deadline=None)
@given(crowded())
def test_warm_clusters_change_nothing_of_who_starts_but_where_and_how_soon(snapshot):
    plain = plan(replace(snapshot, warm=()))
    for bound, decision in zip(plan(snapshot), plain, strict=True):
        if isinstance(decision, Start):
            is_ending = not isinstance(bound, Start) and isinstance(bound.cause, ClusterEnding)
            assert isinstance(bound, Start) or is_ending
            assert bound.job_id == decision.job_id
        else:
            assert bound == decision


@settings(max_examples=300, deadline=None)
@given(crowded())
def test_never_are_more_machines_up_than_there_are_and_no_cluster_is_used_twice(snapshot):
    jobs = {each.job_id: each for each in snapshot.queued}
    clusters = {each.name: each for each in snapshot.warm}
    decisions = plan(snapshot)
    starts = [each for each in decisions if isinstance(each, Start)]
    evicted = [name for each in decisions if isinstance(each, Evict) for name in each.clusters]
    used = [each.onto for each in starts if each.onto] + evicted
    assert len(used) == len(set(used))
    assert not any(clusters[name].is_ending for name in used)
    launched = [
        jobs[each.job_id].shape for each in starts if not each.onto or not clusters[each.onto].is_on
    ]
    there = [each.shape for each in snapshot.running]
    there += [each.shape for each in snapshot.warm if each.is_on]
    for key in PLACES:
        up = sum(each.num_nodes for each in [*there, *launched] if key in each.limits)
        assert up <= snapshot.limits[key].caps["nodes"]
