"""A warm cluster is left to the job that waits for it, and not forever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from jobs.actions.jobs.hold import hold_job
from jobs.models import Cluster, Job, JobDependency, Quota
from jobs.permissions import Actor
from jobs.reconcilers import queue
from jobs.statuses import ClusterStatus, JobStatus, WaitReason
from tests.factories import make_job, make_spec
from tests.integration.reconcilers.steps import end_idle, later, status_of, verbs

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P6.1"), pytest.mark.feature("S2.8")]


@pytest.fixture
def cluster(submit_kept, run_through) -> Cluster:
    """Create a cluster whose spec keeps it warm for ten minutes."""
    run_through(submit_kept())
    return Cluster.objects.get()


@pytest.fixture
def name_it(cluster, project) -> Callable[..., Job]:
    """Return a function that makes a queued job that names the cluster, or another one."""

    def make(name: str = "") -> Job:
        spec = make_spec(portal={"cluster": name or cluster.name})
        return make_job(project, spec=spec)

    return make


@pytest.fixture
def after(time_machine, cluster) -> Callable[..., str]:
    """Return a function that reports the cluster's state after some time without a job."""

    def wait(**length: float) -> str:
        later(time_machine, **length)
        queue.run_pass()
        end_idle()
        cluster.refresh_from_db()
        return cluster.status

    return wait


def test_a_cluster_stays_for_the_job_that_names_it_and_is_over_a_quota(
    project, name_it, after, tick
):
    quota = Quota.objects.create(project=project, caps={"jobs": 0})
    job = name_it()
    assert after(minutes=11) == ClusterStatus.UP
    assert after(hours=30) == ClusterStatus.UP
    assert (status_of(job), job.wait_reason) == (JobStatus.QUEUED, WaitReason.QUOTA)
    quota.delete()
    queue.run_pass()
    assert job.attempts.get().cluster_id == Cluster.objects.get().pk


def test_a_cluster_stays_for_a_job_that_names_it_and_waits_for_another(
    project, name_it, after, cluster
):
    job, first = name_it(), make_job(project, held=True)
    JobDependency.objects.create(job=job, needs=first, needs_number=first.pk)
    assert after(hours=3) == ClusterStatus.UP
    hold_job(Actor(job.submitted_by), job)
    assert after(seconds=1) == ClusterStatus.GONE


def test_an_administrators_limit_holds_also_for_a_cluster_that_is_wanted(
    project, name_it, after, settings
):
    Quota.objects.create(project=project, caps={"jobs": 0})
    job = name_it()
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    assert after(minutes=19) == ClusterStatus.UP
    assert after(minutes=2) == ClusterStatus.GONE
    queue.run_pass()
    assert status_of(job) == JobStatus.FAILED


def test_jobs_that_name_another_cluster_or_are_of_another_project_keep_none(
    name_it, after, cluster
):
    name_it("mp-another")
    make_job(spec=make_spec(portal={"cluster": cluster.name}))
    queued = Job.objects.filter(status=JobStatus.QUEUED)
    queued.update(next_try_at=timezone.now() + timezone.timedelta(days=1))
    assert after(minutes=11) == ClusterStatus.GONE
    assert queued.count() == 2


def test_the_backends_own_stop_moves_on_while_a_cluster_is_wanted(
    project, fake, name_it, after, cluster
):
    Quota.objects.create(project=project, caps={"jobs": 0})
    name_it()
    assert fake.backstop(cluster.name) == 40
    for _ in range(9):
        after(minutes=10)
    assert fake.backstop(cluster.name) >= 90 + 15
    assert verbs(fake).count("autostop") < 9
