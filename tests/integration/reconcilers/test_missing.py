"""A row whose cluster no backend shows: noted when it lasts, and given up once no job is on it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import Cluster
from jobs.reconcilers import orphans, teardown
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.reconcilers.steps import own_prefix, request_for

pytestmark = pytest.mark.django_db

LATER = timedelta(minutes=11)


@pytest.fixture(autouse=True)
def redis(redis_client) -> Any:
    return redis_client


@pytest.fixture
def sweep(time_machine):
    """Return a function that runs one sweep, and what it leads to, after that much time."""

    def run(after: timedelta = timedelta()) -> None:
        time_machine.move_to(timezone.now() + after)
        orphans.step()
        for cluster_id in teardown.due():
            teardown.step(cluster_id)

    return run


def test_a_cluster_that_is_not_shown_for_long_is_noted_on_its_job(fake, sweep):
    job = make_job(status=JobStatus.RUNNING, backend_name="fake")
    attempt = make_attempt(job)
    Cluster.objects.filter(pk=attempt.cluster_id).update(status=ClusterStatus.UP)
    sweep(LATER)
    assert not job.events.filter(verb="unseen").exists()
    sweep(LATER)
    sweep(LATER)
    [note] = job.events.filter(verb="unseen")
    assert "does not show it" in note.message
    assert Cluster.objects.get(pk=attempt.cluster_id).status == ClusterStatus.UP


def test_an_idle_cluster_that_is_not_shown_for_long_is_given_up(fake, sweep):
    job = make_job(status=JobStatus.SUCCEEDED, backend_name="fake")
    cluster = make_attempt(job, ended_at=timezone.now()).cluster
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(status=ClusterStatus.UP, is_reusable=True, idle_since=timezone.now())
    sweep(LATER)
    assert rows.get().status == ClusterStatus.UP
    sweep(LATER)
    assert rows.get().status == ClusterStatus.GONE


def test_a_cluster_that_is_shown_again_is_not_given_up(fake, sweep):
    name = own_prefix() + "1"
    job = make_job(status=JobStatus.SUCCEEDED, backend_name="fake")
    cluster = make_attempt(job, ended_at=timezone.now()).cluster
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(status=ClusterStatus.UP, is_reusable=True, idle_since=timezone.now(), name=name)
    sweep(LATER)
    fake.launch(request_for(name))
    sweep(LATER)
    fake.tear_down(name)
    sweep(timedelta(minutes=5))
    assert rows.get().status == ClusterStatus.UP
