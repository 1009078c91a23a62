"""The live stream of a job, over a real server: what arrives, how soon, and from where."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.api.logs import log_stream
from jobs.attempt_tokens import attempt_token
from jobs.lifecycle import move
from jobs.live import access, looking, sse
from jobs.live.channel import publish_on_commit
from jobs.logs.cursor import Cursor
from jobs.models import Membership
from jobs.statuses import JobStatus, StopReason
from monarch_client.rest.server_sent import read_events
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame, lines
from tests.integration.live.conftest import next_of, texts_of
from tests.waiting import eventually


def finish(job) -> None:
    move(job, JobStatus.SUCCEEDED, reason=StopReason.COMPLETED)


@pytest.mark.feature("P3.1")
def test_a_line_is_seen_within_300_ms_of_being_posted(follow, post, monkeypatch) -> None:
    monkeypatch.setattr(looking, "LOOK_S", 60.0)
    post(frame(1))
    delays = []
    with follow() as events:
        assert texts_of(next_of(events, "line")) == ["r0 s1"]
        for seq in range(2, 12):
            posted_at = time.monotonic()
            post(frame(seq))
            assert texts_of(next_of(events, "line")) == [f"r0 s{seq}"]
            delays.append(time.monotonic() - posted_at)
    assert sorted(delays)[len(delays) // 2] < 0.3


def test_a_stream_holds_no_thread_however_many_there_are(follow, post) -> None:
    post(frame(1))
    with ExitStack() as streams:
        counts = []
        for _ in range(10):
            events = streams.enter_context(follow())
            next_of(events, "line")
            counts.append(sum(each.name.startswith("request") for each in threading.enumerate()))
        # One or two may just be on their way back.
        assert counts[-1] <= counts[0] + 2


def test_a_stream_of_an_ended_job_gives_every_line_and_the_end(follow, post, job) -> None:
    post(*lines(1, 1200))
    finish(job)
    with follow() as events:
        seen = list(events)
    texts = [text for event in seen if event.event == "line" for text in texts_of(event)]
    assert texts == [f"r0 s{seq}" for seq in range(1, 1201)]
    assert seen[-1].event == "end"
    assert json.loads(seen[-1].data)["status"] == "SUCCEEDED"
    assert seen[-1].id == "1:1200"


@pytest.mark.feature("P3.1")
def test_a_stream_is_taken_up_exactly_behind_the_last_event_seen(follow, post, job) -> None:
    post(*lines(1, 700))
    with follow() as events:
        first = next_of(events, "line")
    post(*lines(701, 710))
    finish(job)
    with follow(last_event_id=first.id) as events:
        texts = [text for each in events if each.event == "line" for text in texts_of(each)]
    assert texts_of(first) + texts == [f"r0 s{seq}" for seq in range(1, 711)]


def test_a_stream_begins_after_a_cursor_or_with_the_last_lines(follow, post, job) -> None:
    post(*lines(1, 10))
    finish(job)
    begins: list[tuple[dict[str, Any], int]] = [
        ({"after": "1:7"}, 8),
        ({"tail": 2}, 9),
        ({"tail": 0}, 11),
    ]
    for query, first in begins:
        with follow(**query) as events:
            texts = [text for each in events if each.event == "line" for text in texts_of(each)]
        assert texts == [f"r0 s{seq}" for seq in range(first, 11)]


def test_a_stream_can_be_of_one_rank(follow, post, job) -> None:
    post(*lines(1, 3), *lines(1, 3, rank=1), frame(4))
    finish(job)
    with follow(rank=1) as events:
        assert texts_of(next_of(events, "line")) == ["r1 s1", "r1 s2", "r1 s3"]


def test_what_happens_to_the_job_is_reported_in_the_same_stream(follow, job) -> None:
    with follow() as events:
        assert json.loads(next_of(events, "job").data)["status"] == "RUNNING"
        finish(job)
        reported = [(each.event, json.loads(each.data)["status"]) for each in events]
    assert reported[-2:] == [("job", "SUCCEEDED"), ("end", "SUCCEEDED")]
    assert set(reported[:-2]) <= {("job", "RUNNING")}


def test_a_further_attempt_goes_on_in_the_same_stream(follow, post, job, attempt) -> None:
    post(frame(1), frame(2, "end", reason="USER_CODE", exit_code=1))
    with follow() as events:
        assert next_of(events, "line").id == "1:1"
        move(job, JobStatus.RECOVERING)
        second = make_attempt(job)
        move(job, JobStatus.PROVISIONING)
        ingest_frames(second.pk, attempt_token(job.pk, 2), body(frame(1, text="again")))
        event = next_of(events, "line")
        assert (event.id, texts_of(event)) == ("2:1", ["again"])


def test_a_lost_hint_costs_a_moment_and_no_line(follow, post, monkeypatch) -> None:
    monkeypatch.setattr(looking, "LOOK_S", 0.2)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *_: None)
    with follow() as events:
        next_of(events, "job")
        post(frame(1))
        assert texts_of(next_of(events, "line")) == ["r0 s1"]


def test_a_silent_stream_has_a_heartbeat(client, job, monkeypatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.1)
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    with client.stream("GET", path) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert "no-cache" in response.headers["Cache-Control"]
        assert response.headers["X-Accel-Buffering"] == "no"
        raw = b""
        for chunk in response.iter_bytes():
            raw += chunk
            if raw.count(b"event: beat\n") >= 2:
                break
    assert raw.startswith(b"retry: ")


def test_a_reader_who_goes_leaves_no_task_and_no_subscription(follow, job, redis_client) -> None:
    topic = f"mportal:job:{job.pk}"

    def subscribers() -> int:
        return int(redis_client.pubsub_numsub(topic)[0][1])

    with follow() as events:
        next_of(events, "job")
        assert eventually(lambda: subscribers() == 1)
        with follow() as others:
            next_of(others, "job")
            assert subscribers() == 1, "one subscription serves them all"
        assert subscribers() == 1
    assert eventually(lambda: subscribers() == 0)
    assert len(redis_client.client_list(_type="pubsub")) == 1, "kept for the next reader"


def test_a_reader_that_does_not_read_holds_back_no_other(follow, client, job, post) -> None:
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    with client.stream("GET", path) as slow, follow() as events:
        for seq in range(1, 100):
            post(frame(seq, text=f"{seq} " + "x" * 30_000))
        seen = 0
        while seen < 99:
            seen += len(texts_of(next_of(events, "line")))
        assert slow.status_code == 200


def test_twenty_readers_see_the_same_lines(web, client, job, post) -> None:
    path = f"{web}/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    bodies: list[bytes] = []

    def read() -> None:
        with httpx.stream("GET", path, headers=client.headers, timeout=30) as response:
            bodies.append(b"".join(response.iter_bytes()))

    readers = [threading.Thread(target=read) for _ in range(20)]
    for reader in readers:
        reader.start()
    for seq in range(1, 31):
        post(frame(seq))
    finish(job)
    for reader in readers:
        reader.join(30)
    for each in bodies:
        texts = [text for seq in range(1, 31) for text in [f'"r0 s{seq}"'] if text.encode() in each]
        assert len(texts) == 30
        assert each.count(b'"text"') == 30
    assert len(bodies) == 20


def test_readers_who_stand_at_one_line_have_the_next_one_read_once(
    web, client, job, post, monkeypatch
) -> None:
    monkeypatch.setattr(looking, "LOOK_S", 600.0)
    monkeypatch.setattr(access, "CHECKED_EVERY_S", 600.0)
    reads: list[tuple[Any, int]] = []
    read = log_stream.log_of_attempts

    def counted(*arguments: Any) -> Any:
        page = read(*arguments)
        reads.append((arguments[1], len(page.lines)))
        return page

    monkeypatch.setattr(log_stream, "log_of_attempts", counted)
    path = f"{web}/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    post(frame(1))
    standing, seen = threading.Semaphore(0), threading.Semaphore(0)

    def follow_one() -> None:
        with httpx.stream("GET", path, headers=client.headers, timeout=60) as response:
            events = read_events(response.iter_bytes())
            assert texts_of(next_of(events, "line")) == ["r0 s1"]
            standing.release()
            assert texts_of(next_of(events, "line")) == ["r0 s2"]
            seen.release()

    readers = [threading.Thread(target=follow_one) for _ in range(20)]
    for reader in readers:
        reader.start()
    assert all(standing.acquire(timeout=60) for _ in readers)
    post(frame(2))
    assert all(seen.acquire(timeout=60) for _ in readers)
    for reader in readers:
        reader.join(60)
    with_the_line = [count for place, count in reads if place == Cursor(1, 1) and count]
    # One, and a few who had not looked a second time yet when it came.
    assert len(with_the_line) < len(readers)


def test_a_member_who_is_removed_loses_the_stream(follow, post, job, monkeypatch) -> None:
    monkeypatch.setattr("jobs.live.access.CHECKED_EVERY_S", 0.0)
    with follow() as events:
        next_of(events, "job")
        Membership.objects.all().delete()
        publish_on_commit(job)
        post(frame(1))
        # It ends by itself, and sends nothing more than was on its way.
        assert {event.event for event in events} <= {"job"}


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"after": "nonsense"}, 400, "invalid_cursor"),
        ({"rank": "x"}, 400, "invalid_request"),
        ({"stream": "stdin"}, 400, "invalid_request"),
    ],
)
def test_a_stream_that_cannot_be_opened_says_why(client, job, query, status, code) -> None:
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_strangers_and_anonymous_callers_get_no_stream(client, web, job) -> None:
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    assert httpx.get(web + path).status_code == 401
    other = make_job()
    path = f"/api/v1/projects/{other.project.slug}/jobs/{other.pk}/logs/stream"
    assert client.get(path).status_code == 404


def test_a_stream_is_the_same_compressed_and_as_it_is(client, post, job) -> None:
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    post(frame(1), frame(2))
    finish(job)
    bodies = {}
    for coding in ("deflate", "identity"):
        with client.stream("GET", path, headers={"Accept-Encoding": coding}) as response:
            bodies[response.headers.get("Content-Encoding", "identity")] = response.read()
            assert "Accept-Encoding" in response.headers["Vary"]
    assert bodies["deflate"] == bodies["identity"]
    assert b"r0 s2" in bodies["identity"]
