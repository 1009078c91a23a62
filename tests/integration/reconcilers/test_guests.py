"""Who goes onto a kept cluster: whom the plan lets in, and not for ever before others."""

from __future__ import annotations

import pytest

from jobs.actions.kept_wishes import who_wants
from jobs.actions.plan_pass import begin_pass
from jobs.actions.queue_snapshot import load_snapshot
from jobs.actions.start_attempt import start_attempt
from jobs.errors import StaleJobError
from jobs.models import Cluster, Job, JobDependency, Queue
from jobs.policies.idle import Wanted
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
    # And the hour for which it may be left to one like it.
    submit_kept(idle={"minutes": 45})
    make_job(project, backend_name="fake")
    keeping, plain = load_snapshot().queued
    assert keeping.wish is not None and keeping.wish.keeps_s == (45 + 60) * 60
    assert plain.wish is None
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    keeping, _ = load_snapshot().queued
    assert keeping.wish is not None and keeping.wish.keeps_s == 20 * 60


def test_a_cluster_is_kept_after_a_job_that_names_it_for_as_long_as_it_says(
    cluster, submit_kept, settings
):
    submit_kept()
    assert [each.keeps_s for each in load_snapshot().kept] == [(10 + 60) * 60]
    settings.MPORTAL_MAX_IDLE_MINUTES = 5
    assert [each.keeps_s for each in load_snapshot().kept] == [300.0]


@pytest.mark.feature("P5.1")
@pytest.mark.parametrize("kept_back", ["nobody", "one of its project"])
def test_short_jobs_that_follow_each_other_do_not_move_the_moment_of_a_higher_queue(
    cluster, submit_kept, project, kept_back
):
    """A cluster is left for an hour longer to who is kept back, and so it is after each guest."""
    Queue.objects.create(name="urgent", rank=10)
    make_job(make_project(), backend_name="fake", queue_name="urgent")
    if kept_back != "nobody":
        waits, held = submit_kept(), make_job(project, held=True)
        JobDependency.objects.create(job=waits, needs=held, needs_number=held.pk)
        Job.objects.filter(pk=waits.pk).update(wait_reason=WaitReason.DEPENDENCY)
    short = submit_kept(portal={"max_duration": "40m"})
    Job.objects.filter(pk=short.pk).update(duration_s=2400)
    snapshot = load_snapshot()
    (left,) = (each for each in snapshot.running if each.kept)
    assert left.ends_s is not None
    assert 69 < (left.ends_s - snapshot.now_s) / 60 <= 70
    assert {each.wish.keeps_s for each in snapshot.queued if each.wish} == {70 * 60}
    assert [each.keeps_s for each in snapshot.kept] == [70 * 60]
    queue.run_pass()
    assert status_of(short) == JobStatus.QUEUED


def test_a_cluster_stays_an_hour_longer_where_nothing_can_start_for_whatever_reason(
    cluster, submit_kept, monkeypatch, time_machine
):
    monkeypatch.setattr("jobs.actions.capacity.shortage", lambda: "The disk is nearly full.")
    job = submit_kept()
    queue.run_pass()
    assert (status_of(job), job.message) == (JobStatus.QUEUED, "The disk is nearly full.")
    assert who_wants(cluster) is Wanted.ALIKE
