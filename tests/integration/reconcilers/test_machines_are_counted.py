"""Clusters count by what they were made for, independent of current and former jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.submit import submit_job
from jobs.backends.fake.backend import FakePlan
from jobs.errors import InvalidSpecError, StaleJobError
from jobs.models import Cluster, Job, Pool, Project, Queue
from jobs.queueing.snapshot import load_snapshot
from jobs.queueing.warm_requests import is_named
from jobs.reconcilers import queue
from jobs.scheduling.snapshot import RunningJob
from jobs.statuses import JobStatus, Role
from tests.factories import make_actor, make_job, make_project, make_spec, set_default_queue
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.8")]

GPUS = {"accelerators": "H100:8"}


@pytest.fixture
def pool(fake) -> Pool:
    """Create a pool of four nodes with eight GPUs each, which an urgent queue reclaims."""
    fake.set_capacity(16)
    caps = {"nodes": 4, "gpus:H100": 32}
    made = Pool.objects.create(name="gpus", backend_name="fake", caps=caps, preempts_by_rank=True)
    set_default_queue(pool=made)
    Queue.objects.create(name="urgent", rank=10, pool=made)
    return made


@pytest.fixture
def submit(project) -> Callable[..., Job]:
    """Return a function that makes a queued job that is counted like a submitted one."""

    def make(nodes: int = 1, of: Project | None = None, queue: str = "default", **spec: Any) -> Job:
        content = make_spec(num_nodes=nodes, **spec)
        fields = {"num_nodes": nodes, "queue_name": queue}
        return make_job(of or project, spec=content, **fields)

    return make


@pytest.fixture
def keep(fake, tick, submit) -> Callable[..., Cluster]:
    """Return a function that lets a job with reuse come to its end; the cluster stays warm."""

    def make(**fields: Any) -> Cluster:
        fake.set_plan(FakePlan(run_s=0))
        job = submit(portal={"reuse": True, "idle": {"minutes": 30}}, **fields)
        tick()
        push(fake, job)
        tick()
        tick()
        fake.set_plan(FakePlan())
        return Cluster.objects.get(attempts__job=job, idle_since__isnull=False)

    return make


def used_of(key: str) -> dict[str, float]:
    used = load_snapshot().limits[key].used
    return {what: amount for what, amount in used.items() if what in {"nodes", "gpus:H100"}}


def holder() -> RunningJob:
    (found,) = load_snapshot().running
    return found


@pytest.mark.parametrize("resources", [{}, {"accelerators": "H100:2"}])
def test_a_job_on_a_part_of_a_warm_cluster_has_all_of_it(tick, keep, submit, pool, resources):
    cluster = keep(nodes=4, resources=GPUS)
    guest = submit(resources=resources, portal={"cluster": cluster.name})
    tick()
    assert status_of(guest) == JobStatus.SETTING_UP
    assert used_of("pool:gpus") == {"nodes": 4, "gpus:H100": 32}
    assert (holder().job_id, holder().shape.amount("gpus:H100")) == (guest.pk, 32)


def test_an_idle_cluster_whose_jobs_were_deleted_is_ended_for_another_job(keep, submit, pool):
    cluster = keep(nodes=4)
    delete_job(make_actor(cluster.project, Role.ADMIN), Job.objects.get())
    urgent = submit(2, of=make_project(), queue="urgent")
    queue.run_pass()
    cluster.refresh_from_db()
    assert cluster.release_requested_at
    assert status_of(urgent) == JobStatus.QUEUED


def test_a_guest_of_another_queue_counts_by_its_own_rank_and_quotas(tick, keep, submit, pool):
    cluster = keep(nodes=4)
    guest = submit(queue="urgent", portal={"cluster": cluster.name, "preemptible": True})
    tick()
    assert status_of(guest) == JobStatus.SETTING_UP
    assert (holder().rank, holder().is_preemptible) == (10, False)
    submit(4, of=make_project(), queue="urgent")
    queue.run_pass()
    assert status_of(guest) == JobStatus.SETTING_UP


def test_clusters_stay_in_the_pool_in_which_they_were_made(tick, keep, submit, pool):
    cluster = keep()
    other = Pool.objects.create(name="small", backend_name="fake", caps={"nodes": 1})
    Queue.objects.create(name="small", pool=other)
    alike = submit(queue="small", portal={"reuse": True, "idle": {"minutes": 30}})
    named = submit(queue="small", portal={"cluster": cluster.name})
    tick()
    assert alike.attempts.get().cluster != cluster
    assert (used_of("pool:gpus"), used_of("pool:small")) == ({}, {"nodes": 1})
    assert status_of(named) == JobStatus.QUEUED
    assert named.message.startswith(f"Cluster {cluster.name} is one of pool gpus, and")
    with pytest.raises(StaleJobError):
        start_attempt(named)
    assert not is_named(cluster)


def test_a_queue_of_another_pool_is_refused_for_a_cluster_that_is_named(keep, project, pool):
    cluster = keep()
    Queue.objects.create(name="other")
    source = {"run": "true", "portal": {"cluster": cluster.name, "queue": "other"}}
    with pytest.raises(InvalidSpecError) as refused:
        submit_job(make_actor(project), project, source)
    (error,) = refused.value.data["errors"]
    said = f"Queue other has no machines of the pool of cluster {cluster.name}."
    assert (error["path"], error["message"]) == ("portal.queue", said)
