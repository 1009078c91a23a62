"""Reclaiming by projects, and that the choice of victims stays quick where there are many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.scheduling import preemption
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.preemption import victims
from jobs.scheduling.snapshot import Preemption, QueuedJob, RunningJob
from tests.unit.scheduling.test_preemption import limits_of, running, wants

pytestmark = [pytest.mark.feature("P5.4"), pytest.mark.feature("P5.1")]
RECLAIM = Preemption(reclaim=True)


def gpus(project: int, kind: str) -> Shape:
    """Return the request of a node of eight GPUs."""
    demand = (("jobs", 1.0), ("nodes", 1.0), ("gpus", 8.0), (f"gpus:{kind}", 8.0))
    return Shape("pool:a", "b", 1, demand, (f"project:{project}", "pool:a", "backend:b"), 8.0)


def taken_back(own: dict[str, float], scarce: str, kind: str = "A100") -> list[int]:
    """List the victims for a node of A100s of a project with this share; another borrows all."""
    machines = {"nodes": 9.0, "gpus": 99.0, "gpus:A100": 99.0}
    machines[scarce] = 1.0 if scarce == "nodes" else 8.0
    limits = {
        "project:1": Limit(LimitKind.PROJECT, "1", dict.fromkeys(own, 99.0), nominal=own),
        "project:2": Limit(LimitKind.PROJECT, "2", {"nodes": 9.0}, nominal={"nodes": 0.0}),
        "pool:a": Limit(LimitKind.POOL, "a", machines),
        "backend:b": Limit(LimitKind.BACKEND, "b", {"nodes": 9.0}),
    }
    borrower = RunningJob(7, gpus(2, kind), project_id=2, is_preemptible=True)
    for key in borrower.shape.limits:
        limits[key].take(borrower.shape.demand)
    job = QueuedJob(100, gpus(1, kind), project_id=1)
    return [each.job_id for each in victims(job, [borrower], limits, RECLAIM)]


@pytest.mark.parametrize("scarce", ["nodes", "gpus", "gpus:A100"])
def test_a_project_takes_back_only_what_its_own_part_names(scarce):
    assert taken_back({"gpus:H100": 64.0}, scarce) == []
    assert taken_back({"jobs": 10.0}, scarce) == []
    assert taken_back({"gpus:A100": 8.0}, scarce) == [7]
    assert taken_back({"gpus": 8.0}, scarce) == [7]
    assert taken_back({"gpus:A100": 4.0}, scarce) == []


def test_a_part_that_names_nodes_alone_takes_back_nodes_and_no_gpus():
    assert taken_back({"nodes": 1.0}, "nodes") == [7]
    assert taken_back({"nodes": 1.0}, "gpus:A100") == []


def test_who_exceeds_one_of_its_parts_takes_nothing_back():
    assert taken_back({"nodes": 1.0, "gpus": 4.0}, "nodes") == []


def many(number: int) -> tuple[QueuedJob, list[RunningJob], dict[str, Limit]]:
    """Make jobs of one node, of three projects and two queues; one job needs all their nodes."""
    holders = [running(n, 1 + n % 3, 1, rank=n % 2, began_s=float(n % 17)) for n in range(number)]
    return wants(4, number, rank=2), holders, limits_of(holders, float(number))


@pytest.mark.parametrize("name", ["_borrowed", "_count", "_scarce"])
def test_twice_as_many_to_choose_from_are_twice_the_work(name, monkeypatch):
    calls = 0
    original: Callable[..., Any] = getattr(preemption, name)

    def counting(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return original(*args)

    monkeypatch.setattr(preemption, name, counting)
    worked = []
    for number in (300, 600):
        calls = 0
        job, holders, limits = many(number)
        taken = victims(job, holders, limits, Preemption(reclaim=True, by_rank=True))
        assert len(taken) == number
        worked.append(calls)
    assert 0 < worked[1] <= 2.2 * worked[0]
