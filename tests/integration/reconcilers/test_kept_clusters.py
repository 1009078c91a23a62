"""Clusters that outlive their jobs: kept, taken again, switched off, taken down, never doubled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.cancel import cancel_job
from jobs.actions.delete import delete_job
from jobs.actions.start_attempt import start_attempt
from jobs.backends.fake import FakePlan
from jobs.errors import BackendError
from jobs.models import Cluster, Job
from jobs.reconcilers import autostop, queue, teardown
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_project, make_spec
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def submit(fake, project) -> Callable[..., Job]:
    """A queued job that keeps its cluster."""
    fake.set_plan(FakePlan(run_s=0))

    def make(idle=None, project=project, **fields) -> Job:
        portal = {"reuse": True, "idle": idle or {"minutes": 10}, **fields.pop("portal", {})}
        spec = make_spec(portal=portal, num_nodes=fields.get("num_nodes", 1))
        return make_job(project, backend_name="fake", spec=spec, **fields)

    return make


@pytest.fixture
def run_through(fake, tick):
    """Bring a job to its end."""

    def run(job: Job) -> Job:
        tick()
        push(fake, job)
        tick()
        assert status_of(job) in {JobStatus.SUCCEEDED, JobStatus.FAILED}
        return job

    return run


def later(time_machine, **length) -> None:
    time_machine.move_to(timezone.now() + timedelta(**length))


def end_idle() -> None:
    for reconciler in (autostop, teardown):
        for row_id in reconciler.due():
            reconciler.step(row_id)


def verbs(fake) -> list[str]:
    return [verb for verb, _ in fake.calls()]


@pytest.mark.feature("S2.8")
def test_a_second_job_starts_on_the_machines_of_the_first_without_provisioning(
    fake, submit, run_through
):
    first, second = run_through(submit()), submit()
    (cluster,) = Cluster.objects.all()
    assert (cluster.status, cluster.release_requested_at) == (ClusterStatus.UP, None)
    assert cluster.idle_since
    run_through(second)
    assert status_of(second) == JobStatus.SUCCEEDED
    assert [job.attempts.get().cluster for job in (first, second)] == [cluster, cluster]
    assert [seen.name for seen in fake.existing()] == [cluster.name]
    assert verbs(fake) == ["launch", "launch"]


def test_a_job_that_does_not_ask_for_it_gets_new_machines_and_leaves_none(
    fake, submit, run_through, project
):
    run_through(submit())
    plain = run_through(make_job(project, backend_name="fake"))
    assert Cluster.objects.count() == 2
    assert Cluster.objects.get(attempts__job=plain).release_requested_at


@pytest.mark.parametrize("other", [{"num_nodes": 2}, {"project": "another"}])
def test_machines_that_do_not_fit_and_those_of_others_are_not_taken(submit, run_through, other):
    run_through(submit())
    if "project" in other:
        other = {"project": make_project("other")}
    second = run_through(submit(**other))
    assert Cluster.objects.filter(idle_since__isnull=False).count() == 2
    assert Cluster.objects.filter(attempts__job=second).get().attempts.count() == 1


def test_a_kept_cluster_takes_one_job_at_a_time(fake, submit, run_through):
    run_through(submit())
    fake.set_plan(FakePlan())
    second, third = submit(), submit()
    queue.run_pass()
    clusters = [job.attempts.get().cluster for job in (second, third)]
    assert clusters[0] != clusters[1]
    assert clusters[0].idle_since is None


def test_a_full_backend_is_no_reason_to_wait_for_machines_that_are_kept(fake, submit, run_through):
    fake.set_capacity(1)
    run_through(submit())
    second = submit()
    stranger = make_job(backend_name="fake")
    queue.run_pass()
    assert status_of(second) == JobStatus.PROVISIONING
    assert status_of(stranger) == JobStatus.QUEUED
    assert stranger.message.startswith("Needs 1 node; 0 of 1 are free on fake.")


def test_a_failed_program_leaves_the_machines_to_its_next_try(fake, submit, tick, time_machine):
    fake.set_plan(FakePlan(run_s=0, exit_code=1))
    job = submit(portal={"retry": {"max_attempts": 2}})
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
    fake, submit, tick, time_machine
):
    fake.set_plan(FakePlan())
    job = submit()
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


def test_a_launch_that_fails_leaves_nothing_to_be_taken_again(fake, submit, tick):
    fake.set_plan(FakePlan(launch_error="The partition is closed."))
    job = submit()
    tick()
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert Cluster.objects.get().status == ClusterStatus.GONE


def test_a_cancelled_job_whose_runner_ended_well_leaves_its_machines(fake, submit, tick):
    fake.set_plan(FakePlan())
    job = submit()
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
    fake, submit, tick, time_machine, monkeypatch
):
    fake.set_plan(FakePlan())
    monkeypatch.setattr(type(fake), "stop", lambda *_args, **_named: None)
    job = submit()
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


@pytest.mark.feature("P6.1")
def test_an_idle_cluster_goes_down_on_time_and_what_a_job_takes_to_set_up_is_not_idleness(
    fake, submit, tick, run_through, time_machine
):
    run_through(submit())
    fake.set_plan(FakePlan(start_s=7200))
    second = submit(idle={"minutes": 5})
    tick()
    later(time_machine, hours=1)
    end_idle()
    assert status_of(second) in {JobStatus.PROVISIONING, JobStatus.SETTING_UP}
    assert fake.existing()
    cancel_job(make_actor(second.project, Role.ADMIN), second)
    fake.finish(Cluster.objects.get().name)
    push(fake, second)
    tick()
    later(time_machine, minutes=4, seconds=50)
    end_idle()
    assert fake.existing()
    later(time_machine, seconds=20)
    end_idle()
    assert fake.existing() == []
    assert Cluster.objects.get().status == ClusterStatus.GONE
    note = second.events.get(verb="cluster_ended")
    assert note.message.endswith("is taken down. No job was on it for 5 min.")


@pytest.mark.feature("P6.3")
def test_a_cluster_is_switched_off_first_and_taken_down_later(
    fake, submit, run_through, time_machine
):
    run_through(submit(idle={"minutes": 5, "then": "stop", "down_after": 60}))
    later(time_machine, minutes=6)
    end_idle()
    cluster = Cluster.objects.get()
    assert cluster.status == ClusterStatus.STOPPED
    assert [seen.status for seen in fake.existing()] == ["STOPPED"]
    later(time_machine, minutes=59)
    end_idle()
    assert fake.existing()
    later(time_machine, minutes=2)
    end_idle()
    assert fake.existing() == []


@pytest.mark.feature("P6.3")
def test_a_job_switches_machines_on_again_that_were_kept_for_it(
    fake, submit, run_through, time_machine
):
    run_through(submit(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    second = run_through(submit())
    assert status_of(second) == JobStatus.SUCCEEDED
    cluster = Cluster.objects.get()
    assert (cluster.status, cluster.stopped_at) == (ClusterStatus.UP, None)


def test_machines_being_switched_off_take_no_job_before_they_are_off(
    fake, submit, run_through, time_machine
):
    fake.set_plan(FakePlan(run_s=0, switch_off_s=30))
    run_through(submit(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    old = Cluster.objects.get()
    assert old.status == ClusterStatus.STOPPING
    second = submit()
    queue.run_pass()
    assert second.attempts.get().cluster != old
    later(time_machine, seconds=40)
    end_idle()
    old.refresh_from_db()
    assert old.status == ClusterStatus.STOPPED


def test_machines_that_cannot_be_switched_off_are_taken_down_instead(
    fake, submit, run_through, time_machine, monkeypatch
):
    def refused(*_args):
        raise BackendError("Slurm keeps no disks.")

    monkeypatch.setattr(type(fake), "stop_machines", refused)
    job = run_through(submit(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    assert fake.existing() == []
    notes = job.events.filter(verb="cluster_ended").values_list("message", flat=True)
    assert "could not be switched off: Slurm keeps no disks." in list(notes)[-1]


def test_who_takes_a_cluster_and_who_ends_it_exclude_each_other(
    submit, run_through, time_machine, monkeypatch
):
    run_through(submit())
    second = submit()
    later(time_machine, minutes=11)
    look_at = autostop._look_at

    def too_late(cluster, backend):
        start_attempt(second)
        look_at(cluster, backend)

    monkeypatch.setattr(autostop, "_look_at", too_late)
    end_idle()
    cluster = second.attempts.get().cluster
    assert (cluster.attempts.count(), cluster.release_requested_at) == (2, None)


def test_a_limit_set_later_holds_for_clusters_that_are_kept_already(
    fake, submit, run_through, time_machine, project, settings
):
    run_through(submit(idle={"minutes": 600}))
    later(time_machine, minutes=30)
    end_idle()
    assert fake.existing()
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    end_idle()
    assert fake.existing() == []


def test_the_backend_is_told_a_later_stop_of_its_own(fake, submit, tick, run_through):
    run_through(submit(idle={"minutes": 5}))
    cluster = Cluster.objects.get()
    assert fake.backstop(cluster.name) == 35
    run_through(submit(idle={"minutes": 50}))
    for _ in range(3):
        end_idle()
    assert fake.backstop(cluster.name) == 80
    assert verbs(fake).count("autostop") == 1


def test_an_ended_job_may_be_deleted_while_its_machines_are_kept_for_others(submit, run_through):
    job = run_through(submit())
    delete_job(make_actor(job.project, Role.ADMIN), job)
    assert Cluster.objects.get().release_requested_at is None
