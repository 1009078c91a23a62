"""Who goes onto a kept cluster: whom the plan lets in, and not for ever before others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.errors import StaleJobError
from jobs.models import Cluster, Job, JobDependency, Queue
from jobs.policies.idle import Wanted
from jobs.queueing.pass_number import begin_pass
from jobs.queueing.snapshot import load_snapshot
from jobs.queueing.warm_requests import who_wants
from jobs.reconcilers import queue
from jobs.statuses import ClusterStatus, JobStatus, WaitReason
from tests.factories import make_job, make_project
from tests.integration.reconcilers.steps import end_idle, later, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.8")]


@pytest.fixture
def cluster(fake, submit_kept, run_through) -> Cluster:
    """One that is kept for ten minutes, on a backend that has no other machines."""
    fake.set_capacity(1)
    run_through(submit_kept())
    return Cluster.objects.get()


def test_a_job_takes_the_kept_cluster_that_the_plan_chose_and_no_other(
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


def test_a_job_that_was_planned_on_machines_of_its_own_takes_no_kept_cluster(cluster, submit_kept):
    """The plan may have refused that one: for its price, or since others count on it."""
    attempt = start_attempt(submit_kept(), planned_by=begin_pass())
    assert attempt.cluster_id != cluster.pk


def test_a_job_that_recovers_takes_a_kept_cluster_without_a_plan(cluster, submit_kept):
    assert start_attempt(submit_kept()).cluster_id == cluster.pk


@pytest.mark.feature("P5.1")
def test_a_kept_cluster_goes_to_the_higher_queue_although_its_project_goes_on(
    cluster, submit_kept, time_machine
):
    """Each comes while the cluster is there; without end they would keep it."""
    Queue.objects.create(name="urgent", rank=10)
    urgent = make_job(make_project(), backend_name="fake", queue_name="urgent")
    next_one = submit_kept()
    queue.run_pass()
    assert (status_of(urgent), status_of(next_one)) == (JobStatus.QUEUED, JobStatus.QUEUED)
    assert next_one.wait_reason == WaitReason.CAPACITY
    assert who_wants(cluster) is Wanted.NEXT
    later(time_machine, minutes=11)
    end_idle()
    cluster.refresh_from_db()
    assert cluster.status == ClusterStatus.UP
    later(time_machine, minutes=1.1)
    end_idle()
    queue.run_pass()
    assert (status_of(urgent), status_of(next_one)) == (JobStatus.PROVISIONING, JobStatus.QUEUED)


def test_a_job_counts_until_the_cluster_that_it_keeps_is_free(project, submit_kept, settings):
    # And the two minutes for which it may be left to one like it.
    submit_kept(idle={"minutes": 45})
    make_job(project, backend_name="fake")
    keeping, plain = load_snapshot().queued
    assert keeping.wish is not None and keeping.wish.keeps_s == (45 + 2) * 60
    assert plain.wish is None
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    keeping, _ = load_snapshot().queued
    assert keeping.wish is not None and keeping.wish.keeps_s == 20 * 60


def test_a_cluster_is_kept_after_a_job_that_names_it_for_as_long_as_it_says(
    cluster, submit_kept, settings
):
    submit_kept()
    assert [each.keeps_s for each in load_snapshot().kept] == [(10 + 2) * 60]
    settings.MPORTAL_MAX_IDLE_MINUTES = 5
    assert [each.keeps_s for each in load_snapshot().kept] == [300.0]


@pytest.fixture
def urgent() -> Callable[[], Job]:
    """Makes a queued job of a higher queue."""

    def make() -> Job:
        Queue.objects.create(name="urgent", rank=10)
        return make_job(make_project(), backend_name="fake", queue_name="urgent")

    return make


@pytest.fixture
def submit_bounded(submit_kept) -> Callable[..., Job]:
    """Makes a queued job that keeps its cluster and runs for so many minutes at most."""

    def make(minutes: int, **fields) -> Job:
        most = {"max_duration": f"{minutes}m"}
        return submit_kept(portal=most, duration_s=60 * minutes, **fields)

    return make


@pytest.mark.feature("P5.1")
@pytest.mark.parametrize("kept_back", ["nobody", "one of its project"])
def test_short_jobs_that_follow_each_other_do_not_move_the_moment_of_a_higher_queue(
    cluster, submit_kept, submit_bounded, urgent, time_machine, kept_back
):
    """Whoever else wants the cluster, it is counted for as long before a guest as after it."""
    first = urgent()
    if kept_back != "nobody":
        waits = submit_kept()
        held = make_job(waits.project, held=True)
        JobDependency.objects.create(job=waits, needs=held, needs_number=held.pk)
        Job.objects.filter(pk=waits.pk).update(wait_reason=WaitReason.DEPENDENCY)
    short = submit_bounded(1)
    snapshot = load_snapshot()
    (left,) = (each for each in snapshot.running if each.kept)
    assert left.ends_s is not None
    assert 11 < (left.ends_s - snapshot.now_s) / 60 <= 12
    queue.run_pass()
    assert status_of(short) == JobStatus.QUEUED
    later(time_machine, minutes=12.1)
    end_idle()
    queue.run_pass()
    assert (status_of(first), status_of(short)) == (JobStatus.PROVISIONING, JobStatus.QUEUED)


@pytest.mark.feature("P5.1")
def test_projects_whose_clusters_take_turns_do_not_put_off_a_higher_queue(
    fake, submit_bounded, run_through, urgent, time_machine
):
    """Of two clusters one counts for the first, and stays that one when its project goes on."""
    fake.set_capacity(2)
    projects = make_project(), make_project()
    for each in projects:
        run_through(submit_bounded(30, project=each))
    later(time_machine, minutes=1)
    submit_bounded(30, project=projects[1])
    queue.run_pass()
    first = urgent()
    queue.run_pass()
    assert status_of(first) == JobStatus.QUEUED
    next_one = submit_bounded(30, project=projects[0])
    queue.run_pass()
    assert (status_of(first), status_of(next_one)) == (JobStatus.QUEUED, JobStatus.QUEUED)
    later(time_machine, minutes=11.1)
    end_idle()
    queue.run_pass()
    assert (status_of(first), status_of(next_one)) == (JobStatus.PROVISIONING, JobStatus.QUEUED)


def test_a_cluster_is_left_to_who_is_kept_back_while_nobody_waits_for_machines(
    cluster, submit_kept, time_machine
):
    back_off(submit_kept())
    assert who_wants(cluster) is Wanted.ALIKE
    later(time_machine, minutes=40)
    end_idle()
    cluster.refresh_from_db()
    assert cluster.status == ClusterStatus.UP
    other = make_job(make_project(), backend_name="fake")
    queue.run_pass()
    assert (status_of(other), other.wait_reason) == (JobStatus.QUEUED, WaitReason.CAPACITY)
    assert who_wants(cluster) is Wanted.NEXT
    end_idle()
    queue.run_pass()
    assert status_of(other) == JobStatus.PROVISIONING


def back_off(job: Job) -> None:
    """As its launch does for which the backend had no machines."""
    again_at = timezone.now() + timedelta(hours=3)
    Job.objects.filter(pk=job.pk).update(wait_reason=WaitReason.BACKOFF, next_try_at=again_at)


def test_who_the_backend_had_no_machines_for_waits_for_those_that_are_kept_for_others(
    cluster, submit_kept
):
    back_off(submit_kept())
    assert who_wants(cluster) is Wanted.ALIKE
    back_off(make_job(make_project(), backend_name="fake"))
    assert who_wants(cluster) is Wanted.NEXT


def test_what_was_said_of_a_job_that_cannot_start_any_more_takes_no_cluster_from_others(
    cluster, submit_kept, project
):
    back_off(submit_kept())
    other = make_job(make_project(), backend_name="fake", wait_reason=WaitReason.CAPACITY)
    assert who_wants(cluster) is Wanted.NEXT
    JobDependency.objects.create(job=other, needs=make_job(project), needs_number=1)
    assert who_wants(cluster) is Wanted.ALIKE


def test_who_waits_for_a_cluster_by_its_name_takes_none_from_others_unless_it_is_off(
    fake, submit_kept, run_through
):
    fake.set_capacity(2)
    for project in (make_project(), make_project()):
        run_through(submit_kept(project=project))
    cluster, named = Cluster.objects.order_by("pk")
    back_off(submit_kept(project=cluster.project))
    waits = submit_kept(
        project=named.project, portal={"cluster": named.name}, wait_reason=WaitReason.CAPACITY
    )
    assert who_wants(cluster) is Wanted.ALIKE
    Cluster.objects.filter(pk=named.pk).update(status=ClusterStatus.STOPPED)
    assert who_wants(cluster) is Wanted.NEXT
    Cluster.objects.filter(pk=named.pk).update(status=ClusterStatus.UP)
    back_off(waits)
    assert who_wants(cluster) is Wanted.NEXT


def test_a_cluster_stays_an_hour_longer_where_nothing_can_start_for_whatever_reason(
    cluster, submit_kept, monkeypatch, time_machine
):
    monkeypatch.setattr("jobs.queueing.capacity.shortage", lambda: "The disk is nearly full.")
    job = submit_kept()
    queue.run_pass()
    assert (status_of(job), job.message) == (JobStatus.QUEUED, "The disk is nearly full.")
    assert who_wants(cluster) is Wanted.ALIKE
