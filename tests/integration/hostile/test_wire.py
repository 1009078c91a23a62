"""Bodies and headers on the wire: endless, slow, or from strangers."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from django.conf import settings as portal_settings
from django.core.handlers.asgi import ASGIHandler
from django.test import Client

from jobs.api.base import body_limit
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.logs import node_clock
from jobs.logs.reading import read_lines
from jobs.models import Attempt, Cluster
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.frame_bytes import body, frame

Connect = Callable[[], socket.socket]
PIECE = b"x" * 65536
HEAD = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/gzip\r\n{more}\r\n"
UPLOADS = "/api/v1/projects/rl/uploads"


def head(path: str = UPLOADS, **headers: str) -> bytes:
    lines = (f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return HEAD.format(path=path, more="".join(lines)).encode()


def status_of(connection: socket.socket) -> int:
    """Return the status of the connection's answer; 0 when it was closed without one."""
    try:
        line = connection.recv(65536)
    except ConnectionError:
        return 0
    return int(line.split()[1]) if line else 0


def pieces(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield PIECE


@pytest.fixture
def spooled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record each time Django began to keep a body."""
    kept: list[int] = []
    create = ASGIHandler.create_request

    def noted(self, scope, body_file):
        kept.append(os.fstat(body_file.fileno()).st_size if body_file._rolled else 0)
        return create(self, scope, body_file)

    monkeypatch.setattr(ASGIHandler, "create_request", noted)
    return kept


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer mpt_unknown"}])
def test_a_strangers_upload_is_refused_before_a_byte_is_kept(web, spooled, headers) -> None:
    headers = {**headers, "Content-Type": "application/gzip"}
    for content in (PIECE * 40, pieces(40)):
        answer = httpx.post(web + UPLOADS, content=content, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["code"] == "not_authenticated"
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert spooled == []


def test_those_who_are_known_may_send_more_than_a_little(web) -> None:
    project = make_project("rl")
    user = make_member(project)
    _, secret = make_token(user)
    attempt = make_attempt(make_job(project, status="RUNNING"))
    of_attempt = attempt_token(attempt.job_id, attempt.number)
    browser = Client()
    browser.force_login(user)
    name = portal_settings.SESSION_COOKIE_NAME
    content = PIECE * 3
    for headers, path, status in (
        ({"Authorization": f"Bearer {secret}"}, UPLOADS, 422),
        ({"Authorization": f"Bearer {of_attempt}"}, f"/api/v1/attempts/{attempt.pk}/frames", 400),
        ({"Cookie": f"{name}={browser.cookies[name].value}"}, "/rl/jobs/new", 403),
        ({"Cookie": f"{name}=made-up"}, "/rl/jobs/new", 401),
        ({"Authorization": "Bearer mpa_made_up"}, f"/api/v1/attempts/{attempt.pk}/frames", 401),
    ):
        headers["Content-Type"] = "application/gzip"
        answer = httpx.post(web + path, content=content, headers=headers)
        assert answer.status_code == status, (path, answer.text[:200])


def test_a_token_that_may_only_read_keeps_nothing_of_an_upload(web, spooled) -> None:
    _, secret = make_token(make_member(make_project("rl")), read_only=True)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/gzip"}
    answer = httpx.post(web + UPLOADS, content=PIECE * 40, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert spooled == []


def test_an_attempts_token_sends_much_only_where_frames_are_taken(web, spooled) -> None:
    attempt = make_attempt(make_job(make_project("rl"), status="RUNNING"))
    token = attempt_token(attempt.job_id, attempt.number)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/gzip"}
    for path in (
        UPLOADS,
        "/rl/jobs/new",
        "/api/v1/tokens",
        "/api/v1/attempts/../projects/rl/uploads",
    ):
        answer = httpx.post(web + path, content=PIECE * 40, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated"), path
    assert spooled == []


@pytest.mark.parametrize(
    ("ended", "cluster", "status"),
    [(False, "UP", 400), (True, "UP", 400), (True, "GONE", 410), (True, None, 410)],
)
def test_an_attempts_token_sends_much_while_the_attempt_is_open(
    web, spooled, ended, cluster, status
) -> None:
    attempt = make_attempt(make_job(make_project("rl"), status="RUNNING"))
    if ended:
        Attempt.objects.update(ended_at=clock.now())
    if cluster:
        Cluster.objects.update(status=cluster)
    else:
        Attempt.objects.update(cluster=None)
    headers = {"Authorization": f"Bearer {attempt_token(attempt.job_id, attempt.number)}"}
    frames = f"/api/v1/attempts/{attempt.pk}/frames"
    assert httpx.post(web + frames, content=PIECE * 3, headers=headers).status_code == status
    assert len(spooled) == (status == 400)


def test_a_push_that_was_slow_on_its_way_is_not_taken_for_a_wrong_clock(web, monkeypatch) -> None:
    monkeypatch.setattr(node_clock, "TOLERATED_S", 0.5)
    attempt = make_attempt(make_job(make_project("rl"), status="RUNNING"))
    printed = clock.now().timestamp()
    sent = body(frame(1, t=printed))

    def slowly() -> Iterator[bytes]:
        yield sent[:10]
        threading.Event().wait(1.5)
        yield sent[10:]

    headers = {
        "Authorization": f"Bearer {attempt_token(attempt.job_id, attempt.number)}",
        "X-Sent-At": f"{printed:.3f}",
    }
    frames = f"{web}/api/v1/attempts/{attempt.pk}/frames"
    assert httpx.post(frames, content=slowly(), headers=headers, timeout=60).is_success
    (line,) = read_lines(attempt.pk)
    assert line.at.timestamp() == pytest.approx(printed, abs=0.01)


def test_a_body_in_chunks_without_a_length_meets_the_same_bound(web) -> None:
    _, secret = make_token(make_member(make_project("rl")))
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    answer = httpx.post(f"{web}/api/v1/tokens", content=pieces(100), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_bodies_that_trickle_hold_no_thread_and_are_cut_off(web, connect, monkeypatch) -> None:
    monkeypatch.setattr(body_limit, "PATIENCE_S", 2.0)
    threads = threading.active_count()
    slow = [connect() for _ in range(60)]
    for connection in slow:
        connection.sendall(head("/sign-in", Content_Length="1000") + b"x")
    assert httpx.get(f"{web}/readyz", timeout=5).is_success
    assert threading.active_count() < threads + 30
    assert {status_of(connection) for connection in slow} == {408}


def test_headers_that_never_end_hold_no_thread(web, connect) -> None:
    threads = threading.active_count()
    for _ in range(100):
        connect().sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: 1")
    assert httpx.get(f"{web}/healthz", timeout=5).is_success
    assert threading.active_count() < threads + 30


@pytest.mark.parametrize("line", [b"X-A: " + b"a" * 60000 + b"\r\n", b"a" * 65536])
def test_headers_without_end_are_cut_off(connect: Connect, line: bytes) -> None:
    connection = connect()
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    with pytest.raises(ConnectionError):
        for _ in range(200):
            connection.sendall(line)


NO_REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b\rc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: \0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked, x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
)


def test_what_is_no_request_is_refused(web: str, connect: Connect) -> None:
    for each in NO_REQUESTS:
        connection = connect()
        connection.sendall(each)
        assert status_of(connection) in {0, 400, 501}, each
    assert httpx.get(f"{web}/healthz", timeout=5).is_success
