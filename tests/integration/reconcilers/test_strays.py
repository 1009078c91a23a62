"""Clusters of others on a backend that many share: noted in a few statements, however many."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.actions.clusters.strays import note_strays, take_down_stray
from jobs.backends.base import SeenCluster
from jobs.models import StrayCluster
from jobs.permissions import Actor
from jobs.statuses import StrayKind
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def note(*seen: SeenCluster) -> None:
    note_strays("fake", "mpown-", seen)


def statements(count: int) -> int:
    """Count the statements that note `count` changed clusters once more."""
    note(*(SeenCluster(f"theirs-{number}") for number in range(count)))
    with CaptureQueriesContext(connection) as requested:
        note(*(SeenCluster(f"theirs-{number}", status="UP") for number in range(count)))
    assert set(StrayCluster.objects.values_list("seen__status", flat=True)) == {"UP"}
    return len(requested)


def test_many_clusters_of_others_take_no_more_statements_than_a_few():
    assert statements(300) == statements(3)


def test_what_is_seen_again_keeps_its_first_sight_and_an_order(time_machine):
    note(SeenCluster("mpown-1"), SeenCluster("theirs"))
    first = StrayCluster.objects.get(name="mpown-1")
    take_down_stray(Actor(make_user(is_superuser=True, username="root")), "mpown-1")
    time_machine.move_to(timezone.now() + timedelta(minutes=1))
    note(SeenCluster("mpown-1", status="UP"), SeenCluster("theirs"), SeenCluster("new"))
    again = StrayCluster.objects.get(name="mpown-1")
    assert (again.ordered_by, again.seen["status"]) == ("root", "UP")
    assert again.first_seen_at == first.first_seen_at
    assert {row.last_seen_at for row in StrayCluster.objects.all()} == {again.last_seen_at}
    assert again.last_seen_at > first.last_seen_at
    kinds = dict(StrayCluster.objects.values_list("name", "kind"))
    assert kinds == {
        "mpown-1": StrayKind.OWN,
        "theirs": StrayKind.FOREIGN,
        "new": StrayKind.FOREIGN,
    }
    note(SeenCluster("new"))
    assert list(StrayCluster.objects.values_list("name", flat=True)) == ["new"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_client")
def test_an_order_that_comes_while_clusters_are_noted_is_kept(monkeypatch):
    """Give the order after the rows are read, and before they are written."""
    note(SeenCluster("mpown-1"))
    admin, read, given = make_user(is_superuser=True), threading.Event(), threading.Event()

    def seen_late(seen: SeenCluster) -> dict[str, str]:
        read.set()
        # Without a lock the order would be there by now, and written over.
        given.wait(timeout=0.5)
        return {"status": seen.status}

    def noted() -> None:
        with closing(connection):
            note(SeenCluster("mpown-1", status="UP"))

    def ordered() -> None:
        read.wait(timeout=10)
        with closing(connection):
            take_down_stray(Actor(admin), "mpown-1")
        given.set()

    monkeypatch.setattr("jobs.actions.clusters.strays._seen_values", seen_late)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(noted), pool.submit(ordered)]:
            done.result(timeout=20)
    row = StrayCluster.objects.get()
    assert (row.ordered_by, row.seen["status"]) == (admin.username, "UP")
