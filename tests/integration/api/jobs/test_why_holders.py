"""Holders of what a job waits for: jobs that are counted in the limit that binds, no others."""

from __future__ import annotations

from django.utils import timezone

from jobs.models import Cluster, Pool, Queue, Quota
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt
from tests.integration.api.jobs import test_why
from tests.integration.api.jobs.test_why import no_hints, queued, running, why

__all__ = ["no_hints"]  # a fixture
pytestmark = test_why.pytestmark


def test_a_pool_that_is_called_like_its_backend_is_not_taken_for_it(member, project, fake):
    """Fill the backend with a job without a pool; two nodes of the pool are still free."""
    fake.set_capacity(3)
    pool = Pool.objects.create(name="fake", backend_name="fake", caps={"nodes": 4})
    Queue.objects.create(name="pooled", pool=pool)
    outside, inside = running(project, 1), running(project, 2, queue_name="pooled")
    reported = why(member, queued(project, 2, queue_name="pooled"))
    assert (reported["limit"]["used"], reported["limit"]["cap"]) == (3, 3)
    assert [each["job_id"] for each in reported["holders"]] == [inside.pk, outside.pk]


def test_machines_that_are_kept_without_a_job_hold_nothing_of_a_quota(member, project, fake):
    """Count warm machines as holders of capacity, not of the quota: their job has ended."""
    fake.set_capacity(4)
    quota = Quota.objects.create(caps={"nodes": 2}, project=project)
    kept = make_attempt(
        queued(project, 2, status=JobStatus.SUCCEEDED, ended_at=timezone.now()),
        ended_at=timezone.now(),
    )
    Cluster.objects.filter(pk=kept.cluster_id).update(
        status=ClusterStatus.UP, is_reusable=True, idle_since=timezone.now()
    )
    holder = running(project, 1)
    waits = queued(project, 2)
    reported = why(member, waits)
    assert reported["code"] == "quota"
    assert [each["job_id"] for each in reported["holders"]] == [holder.pk]
    quota.delete()
    reported = why(member, waits)
    assert reported["code"] == "ending_cluster"
    assert reported["sentence"] == "Waits for 2 nodes of warm clusters, which are being ended."
