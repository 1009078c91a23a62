"""Attempts with and without push, streams that stay open, and a real runner's output."""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Iterator, Mapping

import pytest

from jobs.backends.fake.backend import FakeBackend
from jobs.ground import clock
from jobs.models import Attempt, FollowLease
from jobs.statuses import Carrier
from monarch_client.skypilot.log_frames import frames_beyond
from tests.factories import make_job
from tests.frame_bytes import body, frame
from tests.integration.follower.steps import launched, texts
from tests.skypilot_nodes import SkyPilotNodes
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_an_attempt_that_pushes_after_all_is_no_longer_followed(settings, tmp_path, follower):
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
