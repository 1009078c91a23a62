"""Two users set one pool, queue or quota for the first time at once: one creates it, one edits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from jobs.actions.sharing.pools import PoolChange, set_pool
from jobs.actions.sharing.queue_input import Reading
from jobs.actions.sharing.queues import QueueChange, set_queue
from jobs.actions.sharing.quotas import Whose, set_quota
from jobs.models import Pool, Project, Queue, Quota
from jobs.permissions import Actor
from tests.factories import make_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.feature("P5.1"),
]


@pytest.fixture
def root(monkeypatch, settings, tmp_path) -> Actor:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return Actor(make_user(is_superuser=True))


@pytest.fixture
def between(monkeypatch) -> Callable[[Callable[[], object]], None]:
    """Let another user act after the next action has checked and before it has stored."""
    usual, done = Reading.require_none, []

    def plant(other: Callable[[], object]) -> None:
        def run() -> None:
            try:
                other()
            finally:
                connection.close()

        def watched(self: Reading) -> None:
            usual(self)
            if not done:
                done.append(True)
                thread = threading.Thread(target=run)
                thread.start()
                thread.join(30)

        monkeypatch.setattr(Reading, "require_none", watched)

    return plant


def test_a_pool_that_was_made_meanwhile_is_changed(root, between):
    between(lambda: set_pool(root, "gpus", PoolChange("fake", {"nodes": 4}, "2h")))
    set_pool(root, "gpus", PoolChange("fake", {"nodes": 8}))
    pool = Pool.objects.get()
    assert (pool.caps, pool.patience_s) == ({"nodes": 8}, 7200)


def test_a_queue_that_was_made_meanwhile_is_changed(root, between):
    between(lambda: set_queue(root, "urgent", QueueChange(rank=5, preemptible=True)))
    set_queue(root, "urgent", QueueChange(rank=10))
    queue = Queue.objects.get(name="urgent")
    assert (queue.rank, queue.preemptible) == (10, True)


def test_a_quota_that_was_made_meanwhile_is_changed(root, between):
    project = Project.objects.create(slug="rl", name="rl")
    between(lambda: set_quota(root, Whose(project="rl"), {"nodes": 4}))
    set_quota(root, Whose(project="rl"), {"nodes": 8})
    assert Quota.objects.get(project=project).caps == {"nodes": 8}
