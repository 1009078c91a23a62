"""Frames that the portal fetches: one follower has an attempt, and each line counts once."""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import pytest
from django.db.models import F

from jobs import clock
from jobs.backends import registry
from jobs.backends.fake import FakeBackend, FakePlan
from jobs.errors import BackendError, FramesPostponedError
from jobs.follower import leases
from jobs.follower.loop import LOOK_S, FollowerLoop
from jobs.follower.pull import PullCarrier
from jobs.logs.cursor import START
from jobs.models import Attempt, FollowLease, Job
from jobs.readers.job_log import log_after
from jobs.reconcilers import provisioning, queue
from jobs.statuses import Carrier
from monarch_client.skypilot.log_frames import frames_beyond
from tests.factories import make_job
from tests.frame_bytes import body, frame
from tests.skypilot_nodes import SkyPilotNodes
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
LINES = tuple(f"step {number}" for number in range(20))


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """A backend whose nodes cannot reach the portal."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    settings.MEDIA_ROOT = tmp_path / "blobs"
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    backend.be_pulled()
    backend.set_plan(FakePlan(lines=LINES))
    return backend


@pytest.fixture
def attempt(fake: FakeBackend) -> Attempt:
    """An attempt whose machines are there."""
    return launched(make_job(backend_name="fake"))


@pytest.fixture
def follower() -> Iterator[Callable[[], FollowerLoop]]:
    """Makes followers; they end with the test."""
    made: list[FollowerLoop] = []

    def make() -> FollowerLoop:
        made.append(FollowerLoop())
        return made[-1]

    yield make
    for loop in made:
        loop.end()


def launched(job: Job) -> Attempt:
    queue.run_pass()
    provisioning.step(job.pk)
    return job.attempts.select_related("cluster").get()


def texts(attempt: Attempt) -> list[str]:
    return [line.text for line in log_after(attempt.job_id, START, 1000).lines]


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


def test_whoever_was_away_for_too_long_finds_its_attempt_taken_and_leaves_it(attempt, follower):
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


def test_a_backend_that_fails_now_is_asked_again(attempt, follower, monkeypatch):
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
    """`loop`, whose thread does not come back from the backend with the frames of `attempt`."""
    hangs = attempt.pk
    monkeypatch.setattr(PullCarrier, "is_stuck", property(lambda each: each.attempt_id == hangs))
    loop.look()
    assert loop.carried == {attempt.pk}
    return loop


def test_a_full_disk_makes_a_carrier_wait_and_costs_no_line(attempt, follower, monkeypatch):
    asked, full = [], iter([True] * 2)

    def require_room() -> None:
        asked.append(attempt.pk)
        if next(full, False):
            raise FramesPostponedError

    monkeypatch.setattr("jobs.follower.pull.require_room_for_frames", require_room)
    loop = follower()
    loop.look()
    assert eventually(lambda: texts(attempt) == list(LINES))
    assert len(asked) > 2
    assert loop.carried == {attempt.pk}


def test_nobody_follows_nodes_that_push_for_themselves(settings, tmp_path, follower):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    launched(make_job(backend_name="fake"))
    follower().look()
    assert not FollowLease.objects.exists()


def test_where_nodes_may_push_only_those_that_do_not_are_followed(settings, tmp_path, follower):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    FakeBackend(tmp_path / "fake").be_either()
    unknown, pushing, pulled = (launched(make_job(backend_name="fake")) for _ in range(3))
    note_carrier(pushing, Carrier.PUSH)
    note_carrier(pulled, Carrier.PULL)
    loop = follower()
    loop.look()
    assert loop.carried == {pulled.pk}
    note_carrier(unknown, Carrier.PULL)
    loop.look()
    assert loop.carried == {pulled.pk, unknown.pk}


def test_whoever_pushes_after_all_is_followed_no_longer(settings, tmp_path, follower):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    FakeBackend(tmp_path / "fake").be_either()
    attempt = launched(make_job(backend_name="fake"))
    note_carrier(attempt, Carrier.PULL)
    loop = follower()
    loop.look()
    note_carrier(attempt, Carrier.PUSH)

    def is_let_go() -> bool:
        loop.look()
        return not loop.carried and not FollowLease.objects.exists()

    assert eventually(is_let_go)


def note_carrier(attempt: Attempt, carrier: Carrier) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(carrier=carrier)


class OpenStream:
    """A backend's answer that stays open: frames as they come, and empty ones meanwhile."""

    def __init__(self) -> None:
        self.frames: queues.SimpleQueue[bytes] = queues.SimpleQueue()
        self.is_closed = threading.Event()

    def __call__(self, *_: object, **__: object) -> Iterator[bytes]:
        try:
            while True:
                yield self._next()
        finally:
            self.is_closed.set()

    def _next(self) -> bytes:
        try:
            return self.frames.get(timeout=0.02)
        except queues.Empty:
            return b""


def test_a_stream_that_stays_open_is_stored_as_it_comes(attempt, follower, monkeypatch):
    stream = OpenStream()
    monkeypatch.setattr(FakeBackend, "frames", stream)
    loop = follower()
    loop.look()
    for seq in (1, 2):
        stream.frames.put(body(frame(seq)))
        assert eventually(lambda seq=seq: len(texts(attempt)) == seq)
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=clock.now())
    loop.look()
    assert stream.is_closed.wait(10)


def test_what_a_real_runner_prints_into_a_log_of_others_reaches_the_portal(
    attempt, follower, monkeypatch, tmp_path
):
    nodes = SkyPilotNodes(tmp_path)
    run = "for i in $(seq 60); do echo $i; sleep 0.05; done"
    job = nodes.job(attempt_id=attempt.pk, job_id=attempt.job_id, run=run, carrier="pull")
    reads: list[int] = []

    def frames(_backend: FakeBackend, _name: str, after: Mapping[int, int], **_: object):
        def read(tail: int) -> Iterator[bytes]:
            reads.append(tail)
            log = b"".join(
                b"\x1b[36m(worker1, rank=1, pid=7)\x1b[0m up\n\x1b[36m(head, rank=0, pid=9)\x1b[0m "
                + line
                for line in job.printed().splitlines(keepends=True)
            )
            yield b"".join(log.splitlines(keepends=True)[-tail:])

        return frames_beyond(read, after, attempt.pk, 8)

    monkeypatch.setattr(FakeBackend, "frames", frames)
    try:
        job.start()
        follower().look()
        assert eventually(lambda: Attempt.objects.get(pk=attempt.pk).ended_at is not None)
    finally:
        nodes.close()
    assert Attempt.objects.get(pk=attempt.pk).stop_reason == "COMPLETED"
    assert texts(attempt) == [str(number) for number in range(1, 61)]
    assert max(reads) > 0  # it went on where it had stopped


def test_an_open_stream_without_lines_is_a_sign_of_life(attempt, follower, monkeypatch):
    monkeypatch.setattr(FakeBackend, "frames", OpenStream())
    monkeypatch.setattr("jobs.follower.pull.SIGN_OF_LIFE_S", 0.05)
    follower().look()
    assert eventually(lambda: Attempt.objects.get(pk=attempt.pk).last_seen_at is not None)
    assert Attempt.objects.get(pk=attempt.pk).carrier == ""


def test_the_lease_goes_with_its_attempt(attempt):
    leases.take(attempt.pk, "a")
    Job.objects.filter(pk=attempt.job_id).delete()
    assert not FollowLease.objects.exists()
