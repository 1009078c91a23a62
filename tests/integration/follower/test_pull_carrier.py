"""Frames that the portal fetches: one follower has an attempt, and each line counts once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendError, FramesPostponedError
from jobs.follower import leases
from jobs.follower.loop import LOOK_S, FollowerLoop
from jobs.follower.pull import PullCarrier
from jobs.models import Attempt, FollowLease, Job
from tests.factories import make_job
from tests.integration.follower.steps import LINES, launched, texts
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def owner_of(attempt: Attempt) -> str:
    return FollowLease.objects.get(pk=attempt.pk).owner


def let_it_expire(attempt: Attempt) -> None:
    second = timedelta(seconds=leases.LEASE_S + 1)
    FollowLease.objects.filter(pk=attempt.pk).update(expires_at=F("expires_at") - second)


def test_a_job_whose_nodes_cannot_push_is_followed_to_its_verdict(fake, attempt, follower):
    loop = follower()
    loop.look()
    assert eventually(lambda: len(texts(attempt)) == len(LINES))
    fake.finish(attempt.cluster.name, exit_code=3)
    assert eventually(lambda: Attempt.objects.get(pk=attempt.pk).exit_code == 3)
    assert texts(attempt) == list(LINES)

    def is_let_go() -> bool:
        loop.look()
        return not FollowLease.objects.exists()

    assert eventually(is_let_go)


def test_of_two_followers_one_has_the_attempt(attempt, follower):
    first, second = follower(), follower()
    first.look()
    owner = owner_of(attempt)
    second.look()
    first.look()
    assert owner_of(attempt) == owner
    assert not leases.take(attempt.pk, "another")


def test_a_follower_that_ends_lets_another_go_on_at_once(attempt, follower):
    first, second = follower(), follower()
    first.look()
    owner = owner_of(attempt)
    first.end()
    second.look()
    assert owner_of(attempt) != owner


def test_a_follower_that_was_away_too_long_finds_its_attempt_taken_and_leaves_it(attempt, follower):
    first, second = follower(), follower()
    first.look()
    let_it_expire(attempt)
    second.look()
    owner = owner_of(attempt)

    def has_left() -> bool:
        first.look()
        return not first.carried

    assert eventually(has_left)
    assert owner_of(attempt) == owner
    assert eventually(lambda: texts(attempt) == list(LINES))


def test_a_lease_leaves_three_of_the_ten_seconds_in_which_another_takes_over():
    assert 2 * LOOK_S < leases.LEASE_S <= 10 - 3 - LOOK_S


def test_a_lease_that_has_expired_is_not_brought_back(attempt):
    assert leases.take(attempt.pk, "a")
    assert leases.renew([attempt.pk], "a") == {attempt.pk}
    let_it_expire(attempt)
    assert leases.renew([attempt.pk], "a") == set()
    assert leases.free(leases.Backends(["fake"], []), 10) == [attempt.pk]


def test_a_backend_that_fails_now_is_queried_again(attempt, follower, monkeypatch):
    fetch, failures = FakeBackend.frames, iter([BackendError("Not now."), BackendError("Nor now.")])

    def frames(self: FakeBackend, *arguments: object, **options: object) -> list[bytes]:
        for error in failures:
            raise error
        return fetch(self, *arguments, **options)

    monkeypatch.setattr(FakeBackend, "frames", frames)
    follower().look()
    assert eventually(lambda: texts(attempt) == list(LINES))


@pytest.mark.parametrize("most", [1, 2])
def test_a_thread_that_is_stuck_keeps_no_new_attempt_waiting(attempt, follower, monkeypatch, most):
    monkeypatch.setattr("jobs.follower.loop.MOST_CARRIERS", most)
    loop = stuck_at(attempt, follower(), monkeypatch)
    new = launched(make_job(backend_name="fake"))
    loop.look()
    assert loop.carried == {attempt.pk, new.pk}


def test_threads_that_are_stuck_are_not_piled_up_for_ever(attempt, follower, monkeypatch):
    monkeypatch.setattr("jobs.follower.loop.MOST_CARRIERS", 1)
    monkeypatch.setattr("jobs.follower.loop.MOST_THREADS", 1)
    loop = stuck_at(attempt, follower(), monkeypatch)
    launched(make_job(backend_name="fake"))
    loop.look()
    assert loop.carried == {attempt.pk}


def stuck_at(attempt: Attempt, loop: FollowerLoop, monkeypatch) -> FollowerLoop:
    """Mark the thread of `attempt` in `loop` as stuck in the backend, and return `loop`."""
    hangs = attempt.pk
    monkeypatch.setattr(PullCarrier, "is_stuck", property(lambda each: each.attempt_id == hangs))
    loop.look()
    assert loop.carried == {attempt.pk}
    return loop


def test_a_full_disk_makes_a_carrier_wait_and_costs_no_line(attempt, follower, monkeypatch):
    requested, full = [], iter([True] * 2)

    def require_room() -> None:
        requested.append(attempt.pk)
        if next(full, False):
            raise FramesPostponedError

    monkeypatch.setattr("jobs.follower.pull.require_room_for_frames", require_room)
    loop = follower()
    loop.look()
    assert eventually(lambda: texts(attempt) == list(LINES))
    assert len(requested) > 2
    assert loop.carried == {attempt.pk}


def test_no_follower_reads_nodes_that_push(settings, tmp_path, follower):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    launched(make_job(backend_name="fake"))
    follower().look()
    assert not FollowLease.objects.exists()


def test_the_lease_goes_with_its_attempt(attempt):
    leases.take(attempt.pk, "a")
    Job.objects.filter(pk=attempt.job_id).delete()
    assert not FollowLease.objects.exists()
