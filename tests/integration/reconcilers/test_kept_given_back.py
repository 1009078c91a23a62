"""Clusters that were kept go before jobs that run, where a pool takes machines back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.attempts.preempt import give_back
from jobs.backends.fake.backend import FakePlan
from jobs.errors import StaleJobError
from jobs.models import Cluster, Job, JobEvent, Pool, Project, Queue
from jobs.queueing.pass_number import begin_pass
from jobs.reconcilers import autostop, queue
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_job, make_project, make_spec, set_default_queue
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.8"), pytest.mark.feature("P5.4")]


@pytest.fixture
def pool(fake) -> Pool:
    """Two nodes, a queue for what is urgent and the one for all else."""
    fake.set_capacity(8)
    made = Pool.objects.create(
        name="gpus", backend_name="fake", caps={"nodes": 2}, preempts_by_rank=True
    )
    set_default_queue(pool=made)
    Queue.objects.create(name="urgent", rank=10, pool=made)
    return made


def submit(project: Project, nodes: int = 1, **fields: Any) -> Job:
    portal = {"preemptible": True, **fields.pop("portal", {})}
    spec = make_spec(num_nodes=nodes, portal=portal)
    return make_job(project, num_nodes=nodes, spec=spec, **fields)


def running(tick: Callable[[], None]) -> Job:
    """A job of another project that has machines, and may be stopped."""
    job = submit(make_project())
    tick()
    assert status_of(job) == JobStatus.SETTING_UP
    return job


@pytest.fixture
def keep(fake, tick) -> Callable[..., Cluster]:
    """Lets a job that reuses its cluster come to its end; the cluster is kept."""

    def make(project: Project, nodes: int = 1, **idle: Any) -> Cluster:
        fake.set_plan(FakePlan(run_s=0))
        portal = {"reuse": True, "idle": {"minutes": 30, **idle}}
        job = submit(project, nodes, portal=portal)
        tick()
        push(fake, job)
        tick()
        tick()
        fake.set_plan(FakePlan())
        cluster = Cluster.objects.get(attempts__job=job)
        assert cluster.idle_since is not None
        return cluster

    return make


def state_of(cluster: Cluster) -> tuple[str, bool]:
    cluster.refresh_from_db()
    return cluster.status, cluster.release_requested_at is not None


def test_a_kept_cluster_is_given_back_before_anybody_is_stopped(tick, keep, pool, project):
    cluster = keep(project)
    holder = running(tick)
    urgent = submit(project, queue_name="urgent")
    queue.run_pass()
    assert state_of(cluster) == (ClusterStatus.UP, True)
    urgent.refresh_from_db()
    assert urgent.is_owed
    assert status_of(holder) == JobStatus.SETTING_UP
    said = f"Kept cluster {cluster.name} is given back: job {urgent.pk} needs its machines."
    assert JobEvent.objects.filter(message=said).exists()
    queue.run_pass()
    for _ in range(3):
        tick()
    assert (status_of(urgent), status_of(holder)) == (JobStatus.SETTING_UP, JobStatus.SETTING_UP)


def test_a_kept_cluster_that_is_to_be_switched_off_keeps_its_disks_when_it_is_given_back(
    tick, keep, pool, project
):
    cluster = keep(project, then="stop", down_after=60)
    holder = running(tick)
    urgent = submit(project, queue_name="urgent")
    queue.run_pass()
    assert state_of(cluster) == (ClusterStatus.STOPPING, False)
    queue.run_pass()
    assert status_of(holder) == JobStatus.SETTING_UP
    for _ in range(3):
        autostop.step(cluster.pk)
    assert state_of(cluster) == (ClusterStatus.STOPPED, False)
    tick()
    assert status_of(urgent) != JobStatus.QUEUED


@pytest.mark.parametrize("why", ["pool stops nobody", "somebody wants it longer", "a job names it"])
def test_a_kept_cluster_stays_where(why, keep, pool, project):
    cluster = keep(project, 2)
    if why == "pool stops nobody":
        Pool.objects.update(preempts_by_rank=False)
    elif why == "somebody wants it longer":
        until = timezone.now() + timezone.timedelta(hours=1)
        Cluster.objects.update(idle_policy={**cluster.idle_policy, "until": until.isoformat()})
    else:
        submit(project, 2, portal={"cluster": cluster.name})
    submit(make_project(), queue_name="urgent")
    queue.run_pass()
    assert state_of(cluster) == (ClusterStatus.UP, False)


def test_the_job_on_a_kept_cluster_that_a_queued_job_names_is_not_stopped(
    tick, keep, pool, project
):
    cluster = keep(project, 2)
    guest = submit(project, 2, portal={"reuse": True})
    tick()
    assert status_of(guest) == JobStatus.SETTING_UP
    waiting = submit(project, 2, portal={"cluster": cluster.name})
    urgent = submit(make_project(), queue_name="urgent")
    queue.run_pass()
    assert status_of(guest) == JobStatus.SETTING_UP
    assert (status_of(waiting), status_of(urgent)) == (JobStatus.QUEUED, JobStatus.QUEUED)
    assert state_of(cluster) == (ClusterStatus.UP, False)
    # Nobody keeps machines from others by holding a job.
    Job.objects.filter(pk=waiting.pk).update(held=True)
    queue.run_pass()
    assert status_of(guest) == JobStatus.STOPPING


def test_a_kept_cluster_that_a_job_has_taken_since_the_plan_or_by_an_older_plan_stays(
    keep, pool, project
):
    cluster = keep(project)
    urgent = submit(project, queue_name="urgent")
    older, newer = begin_pass(), begin_pass()
    with pytest.raises(StaleJobError):
        give_back(urgent, [cluster.name], planned_by=older)
    Cluster.objects.update(idle_since=None)
    give_back(urgent, [cluster.name], planned_by=newer)
    assert state_of(cluster) == (ClusterStatus.UP, False)
