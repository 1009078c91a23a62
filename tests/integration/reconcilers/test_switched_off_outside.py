"""Machines that were stopped from outside: by hand, by their cloud, by the backend's autostop."""

from __future__ import annotations

import pytest

from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.fake.backend import FakePlan
from jobs.errors import NotYetGoneError
from jobs.models import Attempt, Cluster
from jobs.reconcilers import orphans, provisioning, queue
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_spec
from tests.integration.reconcilers.steps import end_idle, later, push, status_of

pytestmark = pytest.mark.django_db


def switch_off(fake, name: str, time_machine) -> None:
    try:
        fake.stop_machines(name)
    except NotYetGoneError:
        later(time_machine, seconds=1)
        fake.stop_machines(name)


def test_a_job_whose_machines_were_switched_off_under_it_does_not_run_for_ever(
    fake, submitted, tick, time_machine
):
    fake.set_plan(FakePlan(run_s=3600))
    tick()
    push(fake, submitted)
    tick()
    assert status_of(submitted) == JobStatus.RUNNING
    switch_off(fake, Cluster.objects.get().name, time_machine)
    later(time_machine, seconds=30)
    tick()
    assert submitted.attempts.get(number=1).stop_reason == StopReason.WORKER_LOST
    assert status_of(submitted) in {JobStatus.RECOVERING, JobStatus.PROVISIONING}


@pytest.fixture
def named(fake, project, submit_kept, run_through):
    """Create a warm cluster, and a job that has taken it by its name, not yet launched."""
    run_through(submit_kept({"minutes": 5, "then": "stop", "down_after": 60}))
    cluster = Cluster.objects.get()
    spec = make_spec(portal={"cluster": cluster.name, "port": 22_222})
    job = make_job(project, backend_name="fake", spec=spec)
    return cluster, job


def test_a_cluster_switched_off_outside_that_finds_no_room_still_waits_and_ends_by_its_policy(
    fake, named, tick, time_machine
):
    cluster, job = named
    switch_off(fake, cluster.name, time_machine)
    fake.set_capacity(0)
    queue.run_pass()
    provisioning.step(job.pk)
    assert status_of(job) == JobStatus.QUEUED
    cluster.refresh_from_db()
    assert (cluster.status, cluster.idle_since is None) == (ClusterStatus.STOPPED, False)
    cancel_job(make_actor(job.project, Role.ADMIN), job)
    later(time_machine, minutes=61)
    end_idle()
    later(time_machine, seconds=10)
    end_idle()
    assert not fake.existing()


def test_a_warm_cluster_that_no_job_requests_and_none_uses_is_released(fake, named, time_machine):
    """Release the cluster, whatever caused this state."""
    cluster, job = named
    cancel_job(make_actor(job.project, Role.ADMIN), job)
    Cluster.objects.update(idle_since=None)
    assert not Attempt.objects.open().exists()
    later(time_machine, hours=1)
    orphans.step()
    cluster.refresh_from_db()
    assert cluster.release_requested_at
