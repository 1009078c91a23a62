"""Live streams by the thousand, slow readers, and readers who connect and leave."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings as portal_settings
from django.test import Client
from redis import Redis

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.api.logs import log_stream
from jobs.attempt_tokens import attempt_token
from jobs.live.stream_slots import STREAM_SLOTS
from jobs.models import Job, Project, User
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.frame_bytes import body, lines
from tests.waiting import eventually
from tests.web_process import WebProcess

Connect = Callable[[], socket.socket]


@pytest.fixture
def project(transactional_db: None) -> Project:
    return make_project("rl")


@pytest.fixture
def job(project: Project) -> Job:
    return make_job(project, status="RUNNING")


@pytest.fixture
def secret(project: Project) -> str:
    return make_token(make_member(project))[1]


def get(path: str, **headers: str) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode()


def stream_of(job: Job) -> str:
    return f"/api/v1/projects/rl/jobs/{job.pk}/logs/stream"


def opened(connect: Connect, job: Job, secret: str) -> socket.socket:
    connection = connect()
    connection.sendall(get(stream_of(job), Authorization=f"Bearer {secret}"))
    assert connection.recv(64).startswith(b"HTTP/1.1 200")
    return connection


def cookie_of(user: User) -> str:
    browser = Client()
    browser.force_login(user)
    name = portal_settings.SESSION_COOKIE_NAME
    return f"{name}={browser.cookies[name].value}"


def test_one_user_has_so_many_streams_and_others_still_have_theirs(
    web, connect, job, secret, settings
) -> None:
    settings.MPORTAL_STREAMS_PER_USER = 3
    for _ in range(3):
        opened(connect, job, secret)
    answer = httpx.get(web + stream_of(job), headers={"Authorization": f"Bearer {secret}"})
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_streams")
    assert int(answer.headers["Retry-After"]) > 0
    opened(connect, job, make_token(make_member(job.project))[1])


def test_one_process_has_so_many_streams_of_every_kind(web, connect, job, secret, settings) -> None:
    settings.MPORTAL_STREAMS = 2
    first = opened(connect, job, secret)
    opened(connect, job, secret)
    answer = httpx.get(web + stream_of(job), headers={"Authorization": f"Bearer {secret}"})
    assert (answer.status_code, answer.json()["code"]) == (503, "portal_busy")
    cookie = cookie_of(make_member(job.project))
    table = httpx.get(f"{web}/rl/jobs/stream", headers={"Cookie": cookie})
    assert (table.status_code, table.headers["Retry-After"]) == (503, "5")
    first.close()
    assert eventually(lambda: STREAM_SLOTS.taken == 1)
    opened(connect, job, secret)


def test_the_jobs_table_counts_as_well(web, connect, project, settings) -> None:
    settings.MPORTAL_STREAMS_PER_USER = 1
    cookie = cookie_of(make_member(project))
    connection = connect()
    connection.sendall(get("/rl/jobs/stream", Cookie=cookie))
    assert connection.recv(64).startswith(b"HTTP/1.1 200")
    assert httpx.get(f"{web}/rl/jobs/stream", headers={"Cookie": cookie}).status_code == 429


@pytest.fixture
def process(transactional_db: None, redis_client: Redis, tmp_path: Path) -> Iterator[WebProcess]:
    """Yield a separate web process, whose threads and files can be counted."""
    web = WebProcess(tmp_path)
    web.start()
    yield web
    web.close()


def held(process: WebProcess) -> tuple[int, int]:
    """Count threads and open files of the process."""
    of_process = Path(f"/proc/{process.pid}")
    return len(list((of_process / "task").iterdir())), len(list((of_process / "fd").iterdir()))


def test_readers_who_come_and_go_leave_nothing_behind(process, job, secret, redis_client) -> None:
    address = ("127.0.0.1", urlsplit(process.url).port)
    request = get(stream_of(job), Authorization=f"Bearer {secret}")
    for count in range(1000):
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(request)
            if count % 10 == 0:  # some see the stream begin, most have left before
                connection.recv(64)
    assert eventually(lambda: redis_client.pubsub_channels("mportal:job:*") == [])
    # A few threads and connections are kept for the next ones, however many there were.
    assert eventually(lambda: held(process)[0] < 40 and held(process)[1] < 60), held(process)
    # Far more came than one user may have at once: all places are free again.
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.stream("GET", process.url + stream_of(job), headers=headers) as answer:
        assert answer.status_code == 200


def test_a_reader_who_reads_nothing_costs_a_bounded_part_of_the_log(
    web, connect, job, secret, monkeypatch
) -> None:
    attempt = make_attempt(job)
    token = attempt_token(job.pk, attempt.number)
    for first in range(1, 40001, 2000):
        ingest_frames(attempt.pk, token, body(*lines(first, first + 1999, text="x" * 400)))
    read = log_stream.log_of_attempts
    pages: list[int] = []

    def noted(*arguments):
        page = read(*arguments)
        pages.append(len(page.lines))
        return page

    monkeypatch.setattr(log_stream, "log_of_attempts", noted)
    connection = connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(get(stream_of(job), Authorization=f"Bearer {secret}"))
    assert eventually(lambda: len(pages) >= 2)
    at_rest = eventually(Settled(pages), timeout_s=15)
    assert at_rest
    assert sum(pages) < 40000


class Settled:
    """A condition that holds once nothing was read for a second."""

    def __init__(self, pages: list[int]) -> None:
        self._pages = pages
        self._seen: list[int] = []

    def __call__(self) -> bool:
        self._seen.append(len(self._pages))
        return len(self._seen) > 20 and len(set(self._seen[-20:])) == 1
