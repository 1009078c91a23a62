"""Warm clusters in the queue: idle ones are free, a start takes one, and others end one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.attempts.preempt import evict
from jobs.actions.attempts.start_attempt import start_attempt
from jobs.backends.fake.backend import FakePlan
from jobs.errors import StaleJobError
from jobs.models import Cluster, Job, JobEvent, Pool, Project, Queue
from jobs.queueing.pass_number import begin_pass
from jobs.queueing.snapshot import load_snapshot
from jobs.readers.wait_explanation import explain_wait
from jobs.reconcilers import autostop, queue, teardown
from jobs.statuses import ClusterStatus, JobStatus, WaitReason
from tests.factories import make_actor, make_job, make_project, make_spec, set_default_queue
from tests.integration.reconcilers.steps import push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.8"), pytest.mark.feature("P5.1")]


@pytest.fixture
def cluster(fake, submit_kept, run_through) -> Cluster:
    """Create an idle warm cluster, on a backend that has no other machines."""
    fake.set_capacity(1)
    run_through(submit_kept())
    return Cluster.objects.get()


@pytest.fixture
def urgent(db) -> Callable[[], Job]:
    """Return a function that makes a queued job of another project, in a higher queue."""

    def make() -> Job:
        Queue.objects.create(name="urgent", rank=10)
        return make_job(make_project(), backend_name="fake", queue_name="urgent")

    return make


def state_of(cluster: Cluster) -> tuple[str, bool]:
    cluster.refresh_from_db()
    return cluster.status, cluster.release_requested_at is not None


def test_a_job_takes_the_warm_cluster_that_the_plan_chose_and_no_other(
    fake, submit_kept, run_through
):
    first, second = submit_kept(), submit_kept()
    run_through(first)
    run_through(second)
    named = [each.name for each in Cluster.objects.order_by("pk")]
    assert len(named) == 2
    for chosen in named:
        job = submit_kept()
        assert start_attempt(job, planned_by=begin_pass(), onto=chosen).cluster.name == chosen
    late = submit_kept()
    with pytest.raises(StaleJobError):
        start_attempt(late, planned_by=begin_pass(), onto=named[0])


def test_a_job_that_was_planned_on_machines_of_its_own_takes_no_warm_cluster(cluster, submit_kept):
    attempt = start_attempt(submit_kept(), planned_by=begin_pass())
    assert attempt.cluster_id != cluster.pk


def test_a_job_that_recovers_takes_a_warm_cluster_without_a_plan(cluster, submit_kept):
    assert start_attempt(submit_kept()).cluster_id == cluster.pk


def test_an_idle_cluster_counts_as_free_and_a_job_on_it_does_not(cluster, submit_kept):
    assert load_snapshot(["fake"]).limits["backend:fake"].used.get("nodes", 0) == 0
    start_attempt(submit_kept())
    assert load_snapshot(["fake"]).limits["backend:fake"].used["nodes"] == 1


def test_a_higher_queue_gets_the_machines_of_a_cluster_although_its_project_goes_on(
    cluster, submit_kept, urgent
):
    first, next_one = urgent(), submit_kept()
    queue.run_pass()
    assert (status_of(first), status_of(next_one)) == (JobStatus.QUEUED, JobStatus.QUEUED)
    assert first.message == "Waits for 1 node of warm clusters, which are being ended."
    assert state_of(cluster) == (ClusterStatus.UP, True)
    (note,) = JobEvent.objects.filter(verb="cluster_ended")
    ended = f"Warm cluster {cluster.name} is terminated"
    assert note.message == f"{ended}: a job of another project needs its machines."
    queue.run_pass()
    assert status_of(first) == JobStatus.QUEUED
    teardown.step(cluster.pk)
    queue.run_pass()
    assert (status_of(first), status_of(next_one)) == (JobStatus.PROVISIONING, JobStatus.QUEUED)


@pytest.mark.feature("P5.5")
def test_a_job_that_waits_for_the_end_of_a_cluster_says_so_when_a_user_requests_why(
    cluster, urgent
):
    first = urgent()
    waiting = explain_wait(make_actor(first.project), first)
    assert (waiting.code, waiting.reason, waiting.expected_at) == (
        "ending_cluster",
        WaitReason.CAPACITY,
        None,
    )


def test_a_cluster_whose_policy_says_so_is_stopped_for_another_job_and_keeps_its_disks(
    fake, submit_kept, run_through, urgent
):
    fake.set_capacity(1)
    run_through(submit_kept(idle={"minutes": 30, "then": "stop"}))
    cluster, first = Cluster.objects.get(), urgent()
    queue.run_pass()
    assert state_of(cluster) == (ClusterStatus.STOPPING, False)
    autostop.step(cluster.pk)
    assert state_of(cluster) == (ClusterStatus.STOPPED, False)
    queue.run_pass()
    assert status_of(first) == JobStatus.PROVISIONING


def test_no_cluster_is_ended_for_another_job_while_a_queued_job_names_it(
    cluster, project, urgent, tick
):
    first = urgent()
    named = make_job(project, spec=make_spec(portal={"cluster": cluster.name}))
    tick()
    assert named.attempts.get().cluster == cluster
    assert status_of(first) == JobStatus.QUEUED
    assert state_of(cluster) == (ClusterStatus.UP, False)


def test_a_cluster_that_a_held_job_names_is_ended_for_another_job(cluster, project, urgent):
    urgent()
    make_job(project, spec=make_spec(portal={"cluster": cluster.name}), held=True)
    queue.run_pass()
    assert state_of(cluster) == (ClusterStatus.UP, True)


def test_a_cluster_that_a_job_has_taken_since_the_plan_or_by_an_older_plan_stays(cluster, urgent):
    first = urgent()
    older, newer = begin_pass(), begin_pass()
    with pytest.raises(StaleJobError):
        evict(first, [cluster.name], planned_by=older)
    Cluster.objects.update(idle_since=None)
    evict(first, [cluster.name], planned_by=newer)
    assert state_of(cluster) == (ClusterStatus.UP, False)


def test_a_recovering_job_keeps_its_own_cluster_and_is_counted_once(fake, submit_kept, tick):
    fake.set_capacity(1)
    fake.set_plan(FakePlan(run_s=0, exit_code=1))
    job = submit_kept(portal={"retry": {"max_attempts": 2}})
    tick()
    push(fake, job)
    tick()
    assert status_of(job) == JobStatus.RECOVERING
    other = submit_kept()
    queue.run_pass()
    assert status_of(other) == JobStatus.QUEUED
    assert load_snapshot().limits["backend:fake"].used["nodes"] == 1
    assert start_attempt(job).cluster == Cluster.objects.get()


def test_a_pass_reads_no_whole_specification(cluster):
    for _ in range(2):
        make_job(spec=make_spec(portal={"reuse": True}, envs={"A": "x" * 4000}))
    with CaptureQueriesContext(connection) as requested:
        load_snapshot()
    assert [each for each in requested.captured_queries if '"spec",' in each["sql"]] == []


@pytest.fixture
def pool(fake) -> Pool:
    """Create a pool of two nodes, an urgent queue and one for all other jobs."""
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


@pytest.mark.feature("P5.4")
def test_a_warm_cluster_is_ended_before_any_job_is_stopped(
    fake, tick, pool, project, submit_kept, run_through
):
    run_through(submit_kept())
    cluster = Cluster.objects.get()
    fake.set_plan(FakePlan())
    holder = submit(make_project())
    tick()
    urgent = submit(project, queue_name="urgent")
    for _ in range(4):
        tick()
    assert state_of(cluster)[0] == ClusterStatus.GONE
    assert (status_of(urgent), status_of(holder)) == (JobStatus.SETTING_UP, JobStatus.SETTING_UP)


@pytest.mark.feature("P5.4")
def test_the_job_on_a_cluster_that_a_queued_job_names_is_not_stopped(
    fake, tick, pool, project, submit_kept, run_through
):
    run_through(submit_kept(num_nodes=2))
    cluster = Cluster.objects.get()
    fake.set_plan(FakePlan())
    reusing = submit(project, 2, portal={"reuse": True})
    tick()
    assert reusing.attempts.get().cluster == cluster
    waiting = submit(project, 2, portal={"cluster": cluster.name})
    urgent = submit(make_project(), queue_name="urgent")
    queue.run_pass()
    assert status_of(reusing) == JobStatus.SETTING_UP
    assert (status_of(waiting), status_of(urgent)) == (JobStatus.QUEUED, JobStatus.QUEUED)
    # Holding a job keeps no machines from others.
    Job.objects.filter(pk=waiting.pk).update(held=True)
    queue.run_pass()
    assert status_of(reusing) == JobStatus.STOPPING
