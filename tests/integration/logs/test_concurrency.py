"""Many at once, and killed at any moment: each line once, numbered without holes."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.db import connection, transaction

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.logs import sealing
from jobs.logs.reading import read_lines
from jobs.logs.write import locked_head
from jobs.models import Attempt, LogBlock
from monarch_client.rest.server_sent import read_events
from tests.factories import make_attempt, make_job, make_member, make_token
from tests.frame_bytes import body, frame, lines
from tests.waiting import a_process_waits_for_a_lock, eventually
from tests.web_process import WebProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def attempt(transactional_db: None) -> Attempt:
    return make_attempt(make_job(status="RUNNING", num_nodes=4))


@pytest.fixture
def web(attempt: Attempt, redis_client: object, tmp_path: Path) -> Iterator[WebProcess]:
    """Yield a separate web process; not started yet."""
    process = WebProcess(tmp_path / "home")
    yield process
    process.close()


def numbered_texts(attempt: Attempt) -> list[str]:
    found = read_lines(attempt.pk, limit=5000)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    return [line.text for line in found]


def test_posts_of_many_threads_at_once_store_each_frame_once(attempt) -> None:
    """Repeat posts while earlier, abandoned requests with the same frames still run."""
    token = attempt_token(attempt.job_id, 1)
    posts = [body(*lines(1, last, rank=rank)) for rank in range(4) for last in (3, 7, 12)] * 2
    answers: list[dict[str, int]] = []

    def post(raw: bytes) -> None:
        try:
            answers.append(ingest_frames(attempt.pk, token, raw))
        finally:
            connection.close()

    threads = [threading.Thread(target=post, args=(raw,)) for raw in posts]
    for thread in threads:
        thread.start()
    sealing_rounds = 0
    while any(thread.is_alive() for thread in threads):
        sealing.seal(attempt.pk)
        sealing_rounds += 1
    for thread in threads:
        thread.join()
    assert len(answers) == len(posts)
    texts = numbered_texts(attempt)
    for rank in range(4):
        mine = [text for text in texts if text.startswith(f"r{rank} ")]
        assert mine == [f"r{rank} s{seq}" for seq in range(1, 13)]


def post_until_acknowledged(url: str, attempt_id: int, token: str, last: int) -> None:
    """Act as a minimal runner: post batches of three, repeated until they are acknowledged."""
    acked = 0
    with httpx.Client(timeout=5) as client:
        while acked < last:
            raw = body(*lines(acked + 1, min(acked + 3, last)))
            headers = {"Authorization": f"Bearer {token}", "Content-Encoding": "gzip"}
            path = f"{url}/api/v1/attempts/{attempt_id}/frames"
            try:
                answer = client.post(path, content=gzip.compress(raw), headers=headers)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                acked = answer.json()["acked"].get("0", 0)


@pytest.mark.feature("P3.1")
def test_killing_web_while_frames_are_posted_loses_and_doubles_no_line(attempt, web) -> None:
    token = attempt_token(attempt.job_id, 1)
    web.start()
    runner = threading.Thread(
        target=post_until_acknowledged, args=(web.url, attempt.pk, token, 400)
    )
    runner.start()
    for stored in (30, 150, 270):
        assert eventually(lambda stored=stored: _stored(attempt) >= stored, timeout_s=60)
        web.kill()
        web.start()
    runner.join(60)
    assert not runner.is_alive()
    assert numbered_texts(attempt) == [f"r0 s{seq}" for seq in range(1, 401)]


def _stored(attempt: Attempt) -> int:
    return sum(LogBlock.objects.filter(attempt=attempt).values_list("line_count", flat=True))


def test_a_web_process_killed_in_the_middle_of_a_post_has_stored_all_of_it_or_nothing(
    attempt, web
) -> None:
    """Hold the log's lock, so that the kill comes between the post's begin and its end."""
    token = attempt_token(attempt.job_id, 1)
    web.start()
    ingest_frames(attempt.pk, token, body(frame(1)))
    path = f"{web.url}/api/v1/attempts/{attempt.pk}/frames"
    headers = {"Authorization": f"Bearer {token}"}
    failures: list[Exception] = []

    def post() -> None:
        try:
            httpx.post(path, content=body(*lines(2, 5)), headers=headers, timeout=30)
        except httpx.TransportError as error:
            failures.append(error)

    poster = threading.Thread(target=post)
    with transaction.atomic():
        locked_head(attempt.pk)
        poster.start()
        assert eventually(a_process_waits_for_a_lock)
        web.kill()
        poster.join(30)
    assert len(failures) == 1
    assert eventually(lambda: not a_process_waits_for_a_lock())
    assert numbered_texts(attempt) in (["r0 s1"], [f"r0 s{seq}" for seq in range(1, 6)])
    web.start()
    answer = httpx.post(path, content=body(*lines(2, 6)), headers=headers, timeout=30)
    assert answer.json() == {"acked": {"0": 6}}
    assert numbered_texts(attempt) == [f"r0 s{seq}" for seq in range(1, 7)]


@pytest.mark.feature("P3.1")
def test_a_stream_goes_on_exactly_where_it_was_when_web_comes_back(attempt, web) -> None:
    job = attempt.job
    _, secret = make_token(make_member(job.project))
    path = f"{web.url}/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
    headers = {"Authorization": f"Bearer {secret}"}
    token = attempt_token(job.pk, 1)
    seen: list[str] = []
    last_id = ""
    web.start()
    for restart in range(3):
        first = restart * 10 + 1
        ingest_frames(attempt.pk, token, body(*lines(first, first + 9)))
        resume = {"Last-Event-ID": last_id} if last_id else {}
        with httpx.stream("GET", path, headers=headers | resume, timeout=30) as response:
            for event in read_events(response.iter_bytes()):
                if event.event == "line":
                    seen += [line["text"] for line in json.loads(event.data)]
                    last_id = event.id
                    break
            web.kill()
        web.start()
    assert seen == [f"r0 s{seq}" for seq in range(1, 31)]
