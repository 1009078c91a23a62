"""Strangers with unknown tokens, and streams of heads: both cost little, and delay no users."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from jobs.actions.attempts import gateway_streams
from jobs.attempt_tokens import attempt_token
from jobs.gateway import head_slots, listeners
from jobs.ground import clock
from jobs.models import Attempt
from tests.integration.gateway.conftest import GatewayThread
from tests.integration.gateway.ends import WAIT_S, End, Head, Program, dial, raw, refusal
from tests.waiting import eventually

NewTicket = Callable[[], str]


@pytest.fixture
def _behind_a_proxy(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    settings.MPORTAL_TRIES_PER_ADDRESS = 2


def status_of(gateway: GatewayThread, token: str, address: str, path: str = "head") -> int:
    try:
        dial(gateway.url, path, token, address=address).close()
    except InvalidStatus as error:
        return error.response.status_code
    return 101


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Make the look-ups of unknown tokens of heads wait for the event."""
    go_on, enter_head = threading.Event(), gateway_streams.enter_head

    def enter(token: str) -> object:
        assert not token.startswith("stuck") or go_on.wait(WAIT_S)
        return enter_head(token)

    monkeypatch.setattr(gateway_streams, "enter_head", enter)
    yield go_on
    go_on.set()


@pytest.mark.usefixtures("_behind_a_proxy")
def test_an_address_that_guesses_is_asked_for_patience_and_its_good_tokens_work(
    gateway: GatewayThread, attempt: Attempt, redis_url: str
) -> None:
    good = attempt_token(attempt.job_id, attempt.number)
    guesses = [status_of(gateway, "mpa_unknown", "198.51.100.1") for _ in range(4)]
    assert guesses == [401, 401, 429, 429]
    assert status_of(gateway, "mpg_unknown", "198.51.100.1", "session") == 429
    assert status_of(gateway, "a.b", "198.51.100.1", "link") == 429
    assert status_of(gateway, "mpa_unknown", "198.51.100.2") == 401
    assert status_of(gateway, good, "198.51.100.1") == 101


@pytest.mark.usefixtures("_behind_a_proxy")
def test_those_who_guess_delay_neither_users_nor_looks(
    gateway: GatewayThread, head: Head, ticket: NewTicket, stuck: threading.Event
) -> None:
    for _ in range(3):
        status_of(gateway, "mpa_unknown", "198.51.100.1")
    sent = [raw(gateway.url, "head", "stuck", address="198.51.100.1") for _ in range(20)]
    # Eight wait for the one thread, the others are refused at once.
    refused = [b"429" in each.recv(12) for each in sent[8:]]
    assert refused == [True] * 12
    program = Program(gateway.url, ticket())
    gateway.look()
    assert program.read("mesh")
    stuck.set()
    for each in (*sent, program):
        each.close()


def test_an_attempt_has_few_streams_of_its_head(gateway: GatewayThread, attempt: Attempt) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    streams = [End(gateway.url, "head", token) for _ in range(4)]
    status, text = refusal(gateway.url, "head", token)
    assert (status, "4 connections" in text) == (503, True)
    streams.pop().close()
    assert eventually(lambda: refusal(gateway.url, "head", token)[0] == 101)
    Attempt.objects.update(ended_at=clock.now())
    gateway.look()
    assert all(each.is_closed() for each in streams)


def test_a_head_that_does_not_say_hello_is_closed(
    gateway: GatewayThread, attempt: Attempt, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_slots, "HELLO_S", 0.05)
    silent = End(gateway.url, "head", attempt_token(attempt.job_id, attempt.number))
    assert silent.is_closed()
    head.send("lost_hosts", ranks=[1])
    assert not head.stream.close_code


@pytest.mark.parametrize(
    "head",
    [
        b"garbage\r\n\r\n",
        b"",
        b"GET /gateway/v1/head HTTP/1.1\r\nNo header\r\n\r\n",
        b"GET /gateway/v1/head HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n",
        b"GET /gateway/v1/head HTTP/1.1\r\nAuthorization: Bearer \xff\r\n",
        b"GET /gateway/v1/link HTTP/1.1\r\nAuthorization: Bearer \xff.\xfe\r\n",
        b"GET /gateway/v1/head HTTP/1.1\r\nX-Mportal-Hop: 1\r\nAuthorization: Bearer a\r\n",
        b"GET /gateway/\xff HTTP/1.1\r\n",
    ],
    ids=["garbage", "nothing", "broken", "two", "bytes", "link", "hops", "path"],
)
def test_a_malformed_or_slow_opening_writes_no_traceback(
    gateway: GatewayThread,
    attempt: Attempt,
    head: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listeners, "OPEN_TIMEOUT_S", 0.2)
    upgrade = (
        b"Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), WAIT_S) as client:
        client.sendall(head + upgrade if head else head)
        while client.recv(4096):
            pass
    faults = [each for each in caplog.records if each.exc_info or each.levelname == "ERROR"]
    assert not faults
