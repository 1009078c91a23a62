"""Jobs that name the cluster they run on: on some of its nodes, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.backends.fake.backend import FakePlan
from jobs.models import Cluster, Job
from jobs.reconcilers import provisioning, queue
from jobs.statuses import ClusterStatus, JobStatus, StopReason, WaitReason
from tests.factories import make_job, make_spec
from tests.integration.reconcilers.steps import end_idle, later, push, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(fake, submit_kept, run_through) -> Cluster:
    """Create a warm cluster of three nodes that waits for a job."""
    run_through(submit_kept({"minutes": 5, "then": "stop"}, num_nodes=3))
    fake.set_plan(FakePlan())
    return Cluster.objects.get()


@pytest.fixture
def name_it(cluster, project) -> Callable[..., Job]:
    """Return a function that makes a queued job that names the cluster."""

    def make(num_nodes: int = 1, port: int = 22_222, **fields: Any) -> Job:
        portal = {"cluster": cluster.name, "port": port}
        spec = make_spec(num_nodes=num_nodes, portal=portal, **fields)
        return make_job(project, backend_name="fake", spec=spec, num_nodes=num_nodes)

    return make


def test_a_job_runs_on_some_of_the_nodes_and_leaves_the_cluster_as_it_was(
    fake, cluster, name_it, tick
):
    job = name_it(num_nodes=2)
    tick()
    push(fake, job)
    attempt = job.attempts.get()
    assert attempt.cluster == cluster
    assert attempt.workers.count() == 2
    fake.finish(cluster.name)
    push(fake, job)
    tick()
    assert status_of(job) == JobStatus.SUCCEEDED
    cluster.refresh_from_db()
    assert (cluster.status, cluster.release_requested_at) == (ClusterStatus.UP, None)
    assert cluster.idle_since


@pytest.mark.parametrize("port", [22_222, 23_000])
def test_a_cluster_runs_one_job_at_a_time_and_the_next_says_for_whom_it_waits(
    fake, cluster, name_it, tick, port
):
    first, second = name_it(), name_it(port=port)
    tick()
    assert status_of(second) == JobStatus.QUEUED
    assert second.message == f"Waits for cluster {cluster.name}, on which job {first.pk} runs."
    push(fake, first)
    fake.finish(cluster.name)
    push(fake, first)
    tick()
    tick()
    assert second.attempts.get().cluster == cluster


def test_a_job_whose_cluster_is_gone_by_its_start_fails_and_says_so(cluster, name_it):
    job = name_it()
    Cluster.objects.update(is_reusable=False)
    queue.run_pass()
    assert status_of(job) == JobStatus.FAILED
    assert job.message == f"The project keeps no cluster {cluster.name} any more."


def test_a_job_that_lost_its_cluster_does_not_recover_on_another(
    fake, cluster, name_it, tick, time_machine
):
    job = name_it()
    tick()
    push(fake, job)
    tick()
    fake.lose(cluster.name)
    for _ in range(4):
        later(time_machine, seconds=30)
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.NO_CAPACITY
    assert job.attempts.count() == 1


def test_a_cluster_that_cannot_be_switched_on_for_lack_of_room_keeps_its_disks(
    fake, cluster, name_it, time_machine
):
    later(time_machine, minutes=6)
    end_idle()
    job = name_it()
    queue.run_pass()
    fake.set_capacity(0)
    provisioning.step(job.pk)
    assert (status_of(job), job.wait_reason) == (JobStatus.QUEUED, WaitReason.BACKOFF)
    cluster.refresh_from_db()
    assert cluster.status == ClusterStatus.STOPPED
    assert cluster.release_requested_at is None
    fake.set_capacity(16)
    later(time_machine, seconds=10)
    queue.run_pass()
    provisioning.step(job.pk)
    assert status_of(job) == JobStatus.SETTING_UP
