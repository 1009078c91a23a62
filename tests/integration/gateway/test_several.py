"""Two gateway processes: an end may connect to either, and follows the head to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from jobs.gateway import process
from jobs.gateway.listeners import Connection
from jobs.models import Attempt, GatewayHead, GatewaySession
from jobs.statuses import GatewayState
from tests.integration.gateway.conftest import GatewayThread
from tests.integration.gateway.ends import WAIT_S, Head, Program, join, raw, refusal
from tests.sky_stub.process import free_port
from tests.waiting import eventually

NewTicket = Callable[[], str]


@pytest.fixture
def two(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[list[GatewayThread]]:
    started = []
    for name in ("a", "b"):
        settings.MPORTAL_GATEWAY_SOCKET = tmp_path / name / "connections"
        settings.MPORTAL_GATEWAY_LISTEN = f"127.0.0.1:{free_port()}"
        settings.MPORTAL_GATEWAY_INTERNAL = settings.MPORTAL_GATEWAY_LISTEN
        started.append(GatewayThread())
    yield started
    for each in started:
        each.close()


def connected(gateway: GatewayThread, attempt: Attempt) -> Head:
    """Connect the head, and wait until others know."""
    head = Head(gateway.url, attempt)
    rows = GatewayHead.objects.filter(instance=gateway.gateway.instance)
    assert eventually(rows.exists)
    return head


def test_a_session_and_its_links_hop_to_the_process_of_the_head(
    two: list[GatewayThread], attempt: Attempt, ticket: NewTicket
) -> None:
    head = connected(two[0], attempt)
    program = Program(two[1].url, ticket())
    assert program.read("mesh")
    # Each end dials whichever it reaches.
    near, far = join(program, head)
    near.send(b"x" * 300_000)
    assert far.recv(WAIT_S) == b"x" * 300_000
    assert not two[1].gateway.exchange.sessions
    far.close()
    with pytest.raises(ConnectionClosed):
        near.recv(WAIT_S)


def test_what_the_other_process_refuses_is_refused(
    two: list[GatewayThread], attempt: Attempt
) -> None:
    connected(two[0], attempt)
    assert refusal(two[1].url, "session", "mpg_unknown")[0] == 401
    of_first = f"{two[0].gateway.instance}.unknown"
    assert refusal(two[1].url, "link", of_first)[0] == 401


def test_a_session_follows_its_head_to_another_process(
    two: list[GatewayThread], attempt: Attempt, ticket: NewTicket
) -> None:
    program = Program(two[1].url, ticket())
    assert program.read("head_away")
    head = connected(two[0], attempt)
    two[1].look()
    assert program.is_closed()
    again = Program(two[1].url, program.secret)
    assert again.read("mesh")
    assert join(again, head)


def test_a_process_that_died_gets_no_more_requests(
    two: list[GatewayThread], attempt: Attempt, ticket: NewTicket
) -> None:
    connected(two[0], attempt)
    GatewayHead.objects.update(address="127.0.0.1:1")
    opened = ticket()
    assert refusal(two[1].url, "session", opened)[0] == 503
    # Its lease has run out.
    GatewayHead.objects.update(expires_at=attempt.created_at)
    assert Program(two[1].url, opened).read("head_away")


def test_a_request_that_is_no_handshake_opens_nothing(
    two: list[GatewayThread], attempt: Attempt, ticket: NewTicket
) -> None:
    connected(two[0], attempt)
    for each in two:
        request = raw(each.url, "session", ticket(), has_key=False)
        assert request.recv(100).startswith(b"HTTP/1.1 400")
        request.close()
    assert set(GatewaySession.objects.values_list("state", flat=True)) == {GatewayState.OPENING}


def test_a_connection_that_goes_during_its_hop_opens_nothing(
    two: list[GatewayThread],
    attempt: Attempt,
    ticket: NewTicket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hop(connection: Connection, request: Any, address: str) -> object:
        answer = await real_hop(connection, request, address)
        await connection.connection_lost_waiter
        return answer

    real_hop = process.hop
    monkeypatch.setattr(process, "hop", hop)
    connected(two[0], attempt)
    near = raw(two[1].url, "session", ticket())
    sessions = two[0].gateway.exchange.sessions
    assert eventually(lambda: len(sessions) == 1)
    near.close()
    assert eventually(lambda: not sessions)
