"""Wait reasons are true after each pass, and no outdated one is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.errors import BackendUnavailableError
from jobs.models import Cluster, Job
from jobs.permissions import Actor
from jobs.reconcilers import queue
from jobs.statuses import ClusterStatus
from tests.factories import make_attempt, make_job, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(monkeypatch) -> Actor:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return Actor(make_user("ada", is_superuser=True))


@pytest.fixture
def full(fake) -> None:
    """Create four nodes, three of them in use."""
    fake.set_capacity(4)
    make_attempt(make_job(status="RUNNING", num_nodes=3))


def waits(job: Job) -> tuple[str, str]:
    """Run the pass, then return the job's reason."""
    queue.run_pass()
    job.refresh_from_db()
    return job.wait_reason, job.message


def test_the_sentence_follows_the_room_there_is(full, fake):
    job = make_job(num_nodes=4)
    assert waits(job) == ("CAPACITY", "Needs 4 nodes; 1 of 4 is free on fake.")
    fake.set_capacity(6)
    assert waits(job) == ("CAPACITY", "Needs 4 nodes; 3 of 6 are free on fake.")
    Cluster.objects.update(status=ClusterStatus.GONE)
    assert waits(job) == ("", "")


def test_a_backend_that_is_back_is_no_longer_blamed(full, fake, monkeypatch):
    job = make_job(num_nodes=2)
    with monkeypatch.context() as patched:

        def away(_: object) -> int:
            raise BackendUnavailableError("The cloud is away.")

        patched.setattr(type(fake), "capacity_nodes", away)
        assert waits(job) == ("CAPACITY", "The cloud is away.")
    assert waits(job) == ("CAPACITY", "Needs 2 nodes; 1 of 4 is free on fake.")


def test_a_held_or_cancelled_job_blocks_no_other(full, admin):
    project = make_project()
    first, second, third = (make_job(project, num_nodes=nodes) for nodes in (4, 3, 1))
    behind = "Waits behind job {}, for which the next machines are reserved."
    assert waits(second)[1] == waits(third)[1] == behind.format(first.pk)
    hold_job(admin, first)
    assert waits(first) == ("HELD", "Held by ada.")
    assert waits(second)[1] == "Needs 3 nodes; 1 of 4 is free on fake."
    assert waits(third)[1] == behind.format(second.pk)
    cancel_job(admin, second)
    assert waits(third) == ("", "")
    release_job(admin, first)
    assert Job.objects.get(pk=first.pk).message == ""
    assert waits(first)[1] == "Needs 4 nodes; 0 of 4 are free on fake."


def test_a_pause_that_is_over_is_no_longer_the_reason(full):
    soon = timezone.now() + timedelta(minutes=1)
    job = make_job(num_nodes=2, wait_reason="BACKOFF", message="Gone.", next_try_at=soon)
    assert waits(job) == ("BACKOFF", "Gone.")
    Job.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    assert waits(job) == ("CAPACITY", "Needs 2 nodes; 1 of 4 is free on fake.")


def test_a_cancelled_queued_job_lets_those_behind_it_be_looked_at_at_once(
    admin, monkeypatch, django_capture_on_commit_callbacks
):
    hints: list[tuple] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: hints.append(args))
    with django_capture_on_commit_callbacks(execute=True):
        cancel_job(admin, make_job(num_nodes=4))
    assert ("queue", None) in hints


def test_a_job_waits_in_the_queue_for_the_gpus_of_its_backend(fake, monkeypatch):
    monkeypatch.setattr(type(fake), "capacity_gpus", lambda _: 8)
    gpus = {"gpu_type": "H100", "gpu_count": 6}
    running = make_attempt(make_job(status="RUNNING", **gpus))
    job = make_job(**gpus)
    assert waits(job) == ("CAPACITY", "Needs 6 GPUs; 2 of 8 are free on fake.")
    Cluster.objects.filter(pk=running.cluster_id).update(status=ClusterStatus.GONE)
    assert waits(job) == ("", "")
