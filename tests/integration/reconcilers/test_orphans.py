"""All machines are tracked, and none that belongs to another installation is touched."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.clusters.strays import take_down_stray
from jobs.actions.jobs.cancel import cancel_job
from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.errors import BackendUnavailableError, ConflictError, NotFoundError, StillLookingError
from jobs.models import Cluster, Job, StrayCluster
from jobs.permissions import Actor
from jobs.reconcilers import orphans, teardown
from jobs.statuses import ClusterStatus, JobStatus, StrayKind
from tests.factories import make_actor, make_attempt, make_job, make_project, make_token, make_user
from tests.integration.reconcilers.steps import own_prefix, push, request_for, status_of

pytestmark = pytest.mark.django_db

LATER = timedelta(minutes=11)


@pytest.fixture(autouse=True)
def redis(redis_client) -> Any:
    return redis_client


@pytest.fixture
def own() -> str:
    """Return the prefix of this installation's names."""
    return own_prefix()


@pytest.fixture
def admin() -> Actor:
    return Actor(make_user(is_superuser=True))


@pytest.fixture
def sweep(time_machine, own):
    """Return a function that runs one sweep, and what it leads to, after that much time."""

    def run(after: timedelta = timedelta()) -> None:
        time_machine.move_to(timezone.now() + after)
        orphans.step()
        for cluster_id in teardown.due():
            teardown.step(cluster_id)

    return run


def launch(fake: FakeBackend, name: str, attempt_id: int = 1) -> None:
    """Launch as any launcher does, with or without a row."""
    fake.launch(request_for(name, attempt_id))


def names(fake: FakeBackend) -> set[str]:
    return {each.name for each in fake.existing()}


def downs(fake: FakeBackend) -> list[str]:
    return [name for verb, name in fake.calls() if verb == "tear_down"]


def cluster_of(job: Job) -> Cluster:
    cluster = job.attempts.get().cluster
    assert cluster is not None
    return cluster


def test_a_launch_that_arrives_after_the_take_down_is_taken_down(fake, submitted, tick, sweep):
    tick()
    cluster = cluster_of(submitted)
    cancel_job(Actor(submitted.submitted_by), submitted)
    for _ in range(3):
        tick()
    assert status_of(submitted) == JobStatus.CANCELLED
    assert names(fake) == set()
    # The process that was asked to launch it had slept.
    launch(fake, cluster.name, submitted.attempts.get().pk)
    sweep(timedelta(minutes=9))
    assert names(fake) == {cluster.name}
    sweep(LATER)
    assert names(fake) == set()
    cluster.refresh_from_db()
    assert cluster.status == ClusterStatus.GONE
    [note] = submitted.events.filter(verb="orphan")
    assert "it is taken down" in note.message


def test_running_and_waiting_clusters_are_left_alone(fake, submitted, tick, sweep):
    tick()
    push(fake, submitted)
    tick()
    warm = make_attempt(
        make_job(status=JobStatus.SUCCEEDED, backend_name="fake"), ended_at=timezone.now()
    ).cluster
    waiting = {"is_reusable": True, "status": ClusterStatus.UP, "idle_since": timezone.now()}
    Cluster.objects.filter(pk=warm.pk).update(**waiting)
    launch(fake, warm.name)
    for _ in range(3):
        sweep(LATER)
    assert len(names(fake)) == 2
    assert downs(fake) == []


def test_a_cluster_that_was_not_released_after_its_job_is_released(fake, sweep, own):
    job = make_job(status=JobStatus.FAILED, backend_name="fake")
    cluster = make_attempt(job, ended_at=timezone.now()).cluster
    Cluster.objects.filter(pk=cluster.pk).update(name=own + "1", status=ClusterStatus.UP)
    launch(fake, own + "1")
    sweep()
    assert downs(fake) == []
    sweep(LATER)
    assert names(fake) == set()


def test_a_cluster_of_a_job_that_goes_on_is_needed(fake, sweep, own):
    job = make_job(status=JobStatus.STOPPING, backend_name="fake")
    cluster = make_attempt(job, ended_at=timezone.now()).cluster
    Cluster.objects.filter(pk=cluster.pk).update(name=own + "1", status=ClusterStatus.UP)
    launch(fake, own + "1")
    sweep(LATER)
    assert downs(fake) == []


def test_two_installations_side_by_side_leave_each_others_clusters_alone(fake, sweep, own):
    theirs = "mpffffff-123456-1-1"
    launch(fake, theirs)
    launch(fake, "sky-somebody")
    for _ in range(2):
        sweep(LATER)
    assert names(fake) == {theirs, "sky-somebody"}
    assert downs(fake) == []
    assert set(StrayCluster.objects.values_list("name", "kind")) == {
        (theirs, StrayKind.FOREIGN),
        ("sky-somebody", StrayKind.FOREIGN),
    }


def test_after_a_restored_backup_nothing_is_taken_down_and_all_is_shown(fake, sweep, own):
    newer = [f"{own}abcdef-{number}-1" for number in range(3)]
    for number, name in enumerate(newer):
        launch(fake, name, number)
    for _ in range(3):
        sweep(LATER)
    assert names(fake) == set(newer)
    assert downs(fake) == []
    rows = StrayCluster.objects.filter(kind=StrayKind.OWN)
    assert {row.name for row in rows} == set(newer)
    assert all(row.seen["usd_per_hour"] for row in rows)


def test_an_administrator_takes_a_quarantined_cluster_down(fake, sweep, own, admin):
    fake.set_plan(FakePlan(tear_down_s=60))
    launch(fake, own + "lost")
    sweep()
    take_down_stray(admin, own + "lost")
    sweep()
    assert names(fake) == {own + "lost"}
    sweep(timedelta(minutes=2))
    assert names(fake) == set()
    assert not StrayCluster.objects.exists()


def test_no_cluster_of_another_portal_is_terminated(fake, sweep, own, admin):
    launch(fake, "theirs")
    launch(fake, own + "lost")
    sweep()
    with pytest.raises(ConflictError, match="not this portal's"):
        take_down_stray(admin, "theirs")
    with pytest.raises(NotFoundError):
        take_down_stray(make_actor(make_project()), own + "lost")
    token, _ = make_token(admin.user, project=make_project())
    with pytest.raises(NotFoundError):
        take_down_stray(Actor(admin.user, token), own + "lost")
    sweep(LATER)
    assert downs(fake) == []


def test_an_order_is_not_carried_out_when_the_row_is_back(fake, sweep, own, admin):
    launch(fake, own + "lost")
    sweep()
    take_down_stray(admin, own + "lost")
    attempt = make_attempt(make_job(status=JobStatus.RUNNING, backend_name="fake"))
    Cluster.objects.filter(pk=attempt.cluster_id).update(name=own + "lost")
    sweep(LATER)
    assert names(fake) == {own + "lost"}
    assert not StrayCluster.objects.exists()


def test_what_is_not_there_any_more_is_no_longer_shown(fake, sweep, own):
    launch(fake, "theirs")
    sweep()
    first = StrayCluster.objects.get().first_seen_at
    sweep(LATER)
    row = StrayCluster.objects.get()
    assert row.first_seen_at == first < row.last_seen_at
    fake.tear_down("theirs")
    sweep()
    assert not StrayCluster.objects.exists()


def test_a_row_shows_the_status_of_its_backend(fake, submitted, tick, sweep):
    fake.set_price("2.50")
    tick()
    sweep()
    cluster = cluster_of(submitted)
    assert (cluster.infra, cluster.usd_per_hour) == ("fake", Decimal("2.5"))
    assert cluster.resources and cluster.backend_key


def refusing(error: Exception) -> Any:
    def existing(self: object) -> None:
        raise error

    return existing


def test_a_backend_that_is_away_hides_no_other_and_loses_nothing(
    fake, sweep, own, monkeypatch, tmp_path
):
    launch(fake, "theirs")
    sweep()
    other = FakeBackend(tmp_path / "other")
    launch(other, own + "elsewhere")

    class Away(FakeBackend):
        existing = refusing(BackendUnavailableError("Its API server does not answer."))

    class Broken(FakeBackend):
        existing = refusing(ZeroDivisionError())

    place = tmp_path / "fake"
    keeping = {"fake": Away(place), "broken": Broken(place), "other": other}
    monkeypatch.setattr(registry, "keeping", lambda: keeping)
    sweep(LATER)
    assert set(StrayCluster.objects.values_list("name", flat=True)) == {
        "theirs",
        own + "elsewhere",
    }


def test_a_backend_that_has_not_answered_yet_is_queried_again_soon(fake, sweep, monkeypatch):
    requested: list[Any] = []
    monkeypatch.setattr(
        orphans, "wake_later", lambda *args, **later: requested.append((args, later))
    )
    monkeypatch.setattr(FakeBackend, "existing", refusing(StillLookingError()))
    sweep()
    assert requested == [(("orphans",), {"delay_s": orphans.ASK_AGAIN_S})]
