"""Warm clusters: which jobs reuse one, and after which endings one stays up."""

from __future__ import annotations

import pytest

from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.backends.fake.backend import FakePlan
from jobs.models import Cluster
from jobs.reconcilers import queue
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_project
from tests.integration.reconcilers.steps import later, push, status_of, verbs

pytestmark = pytest.mark.django_db


@pytest.mark.feature("S2.8")
def test_a_second_job_starts_on_the_machines_of_the_first_without_provisioning(
    fake, submit_kept, run_through
):
    first, second = run_through(submit_kept()), submit_kept()
    (cluster,) = Cluster.objects.all()
    assert (cluster.status, cluster.release_requested_at) == (ClusterStatus.UP, None)
    assert cluster.idle_since
    run_through(second)
    assert status_of(second) == JobStatus.SUCCEEDED
    assert [job.attempts.get().cluster for job in (first, second)] == [cluster, cluster]
    assert [seen.name for seen in fake.existing()] == [cluster.name]
    assert verbs(fake) == ["launch", "launch"]


def test_a_job_that_does_not_ask_for_it_gets_new_machines_and_leaves_none(
    fake, submit_kept, run_through, project
):
    run_through(submit_kept())
    plain = run_through(make_job(project, backend_name="fake"))
    assert Cluster.objects.count() == 2
    assert Cluster.objects.get(attempts__job=plain).release_requested_at


@pytest.mark.parametrize("other", [{"num_nodes": 2}, {"project": "another"}])
def test_machines_that_do_not_fit_and_those_of_others_are_not_taken(
    submit_kept, run_through, other
):
    run_through(submit_kept())
    if "project" in other:
        other = {"project": make_project("other")}
    second = run_through(submit_kept(**other))
    assert Cluster.objects.filter(idle_since__isnull=False).count() == 2
    assert Cluster.objects.filter(attempts__job=second).get().attempts.count() == 1


def test_a_warm_cluster_takes_one_job_at_a_time(fake, submit_kept, run_through):
    run_through(submit_kept())
    fake.set_plan(FakePlan())
    second, third = submit_kept(), submit_kept()
    queue.run_pass()
    clusters = [job.attempts.get().cluster for job in (second, third)]
    assert clusters[0] != clusters[1]
    assert clusters[0].idle_since is None


def test_a_backend_that_is_full_of_idle_clusters_has_room_for_their_project(
    fake, submit_kept, run_through
):
    fake.set_capacity(1)
    run_through(submit_kept())
    second = submit_kept()
    queue.run_pass()
    assert status_of(second) == JobStatus.PROVISIONING
    stranger = make_job(backend_name="fake")
    queue.run_pass()
    assert status_of(stranger) == JobStatus.QUEUED
    assert stranger.message.startswith("Needs 1 node; 0 of 1 are free on fake.")


def test_a_failed_program_leaves_the_machines_to_its_next_try(
    fake, submit_kept, tick, time_machine
):
    fake.set_plan(FakePlan(run_s=0, exit_code=1))
    job = submit_kept(portal={"retry": {"max_attempts": 2}})
    for _ in range(2):
        tick()
        push(fake, job)
        tick()
        later(time_machine, seconds=10)
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.attempts.count() == 2
    assert Cluster.objects.get().attempts.count() == 2


def test_lost_machines_are_not_kept_and_the_next_attempt_gets_new_ones(
    fake, submit_kept, tick, time_machine
):
    fake.set_plan(FakePlan())
    job = submit_kept()
    tick()
    push(fake, job)
    tick()
    first = Cluster.objects.get()
    fake.lose(first.name)
    for _ in range(3):
        later(time_machine, seconds=30)
        tick()
    assert job.attempts.get(number=1).stop_reason == StopReason.WORKER_LOST
    assert job.attempts.get(number=2).cluster != first
    first.refresh_from_db()
    assert first.status == ClusterStatus.GONE


def test_a_launch_that_fails_leaves_nothing_to_be_taken_again(fake, submit_kept, tick):
    fake.set_plan(FakePlan(launch_error="The partition is closed."))
    job = submit_kept()
    tick()
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_a_cancelled_job_whose_runner_ended_well_leaves_its_machines(fake, submit_kept, tick):
    fake.set_plan(FakePlan())
    job = submit_kept()
    tick()
    push(fake, job)
    tick()
    cancel_job(make_actor(job.project, Role.ADMIN), job)
    for _ in range(3):
        tick()
        push(fake, job)
    assert status_of(job) == JobStatus.CANCELLED
    assert Cluster.objects.get().idle_since
    assert "tear_down" not in verbs(fake)


def test_machines_under_a_runner_that_would_not_stop_are_not_kept(
    fake, submit_kept, tick, time_machine, monkeypatch
):
    fake.set_plan(FakePlan())
    monkeypatch.setattr(type(fake), "stop", lambda *_args, **_named: None)
    job = submit_kept()
    tick()
    push(fake, job)
    tick()
    cancel_job(make_actor(job.project, Role.ADMIN), job)
    tick()
    later(time_machine, minutes=2)
    for _ in range(3):
        tick()
    assert status_of(job) == JobStatus.CANCELLED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_an_ended_job_may_be_deleted_while_its_machines_are_kept_for_others(
    submit_kept, run_through
):
    job = run_through(submit_kept())
    delete_job(make_actor(job.project, Role.ADMIN), job)
    assert Cluster.objects.get().release_requested_at is None
