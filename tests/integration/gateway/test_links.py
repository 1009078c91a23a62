"""Data links: joined once, closed together, with bounded memory."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError

from jobs.gateway import links
from jobs.statuses import GatewayState
from tests.integration.gateway.conftest import GatewayThread, session
from tests.integration.gateway.ends import WAIT_S, Head, Program, join, refusal
from tests.waiting import eventually


def is_closed(connection) -> bool:
    try:
        connection.recv(WAIT_S)
    except ConnectionClosed:
        return True
    except TimeoutError:
        return False
    return False


def test_bytes_pass_in_both_directions_and_are_counted(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    near, far = join(program, head)
    near.send(b"ping" * 1000)
    assert far.recv(WAIT_S) == b"ping" * 1000
    far.send(b"pong")
    assert near.recv(WAIT_S) == b"pong"
    gateway.look()
    assert (session().bytes_up, session().bytes_down) == (4000, 4)


def test_the_last_bytes_of_a_session_that_its_program_ends_are_counted(
    program: Program, head: Head
) -> None:
    near, far = join(program, head)
    near.send(b"ping")
    assert far.recv(WAIT_S) == b"ping"
    program.send("close")
    assert program.is_closed()
    assert eventually(lambda: session().bytes_up == 4)
    assert session().state == GatewayState.CLOSED


@pytest.mark.parametrize("first", [0, 1])
def test_an_end_that_goes_closes_the_other(program: Program, head: Head, first: int) -> None:
    ends = join(program, head)
    ends[first].send(b"last words")
    ends[first].close()
    assert ends[1 - first].recv(WAIT_S) == b"last words"
    assert is_closed(ends[1 - first])


def test_a_newer_generation_ends_the_older(program: Program, head: Head) -> None:
    near, far = join(program, head)
    newer, _ = join(program, head, generation=2)
    assert is_closed(near)
    assert is_closed(far)
    newer.send(b"still open")


def test_a_stream_that_ends_takes_its_links_along(program: Program, head: Head) -> None:
    near, far = join(program, head)
    program.close()
    assert is_closed(near)
    assert is_closed(far)


def test_a_token_of_a_link_is_good_once(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    program.send("link", link=1, generation=1, rank=0)
    token = program.read("dial")["token"]
    program.link(token)
    assert refusal(gateway.url, "link", token)[0] == 401


def test_a_token_of_a_link_expires(
    gateway: GatewayThread, program: Program, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.send("link", link=1, generation=1, rank=0)
    tokens = [end.read("dial")["token"] for end in (program, head)]
    monkeypatch.setattr(links, "TOKEN_LIFE_S", 0)
    assert [refusal(gateway.url, "link", token)[0] for token in tokens] == [401, 401]


def test_without_a_head_a_link_is_refused(program: Program, head: Head) -> None:
    head.close()
    program.read("head_away")
    program.send("link", link=3, generation=1, rank=0)
    assert program.read("refused")["link"] == 3


def test_a_message_that_is_too_large_ends_the_link(program: Program, head: Head) -> None:
    near, far = join(program, head)
    near.send(b"x" * (1024 * 1024 + 1))
    assert is_closed(near)
    assert is_closed(far)


def test_a_link_whose_worker_is_not_reached_is_closed_with_the_reason(
    program: Program, head: Head
) -> None:
    program.send("link", link=1, generation=1, rank=0)
    near = program.link(program.read("dial")["token"])
    requested = head.read("dial")
    named = {name: requested[name] for name in ("session", "link", "generation")}
    head.send("dial_failed", **named, detail="connection refused")
    with pytest.raises(ConnectionClosedError, match="connection refused"):
        near.recv(WAIT_S)


def test_an_end_that_comes_after_the_head_has_failed_gets_the_reason(
    program: Program, head: Head
) -> None:
    program.send("link", link=1, generation=1, rank=0)
    token = program.read("dial")["token"]
    requested = head.read("dial")
    head.link(requested["token"]).close(1011)
    named = {name: requested[name] for name in ("session", "link", "generation")}
    head.send("dial_failed", **named, detail="connection refused")
    head.send("lost_hosts", ranks=[])
    program.read("lost_hosts")
    near = program.link(token)
    with pytest.raises(ConnectionClosedError, match="connection refused"):
        near.recv(WAIT_S)


def test_a_reason_may_follow_the_head_that_has_left(program: Program, head: Head) -> None:
    program.send("link", link=1, generation=1, rank=0)
    token = program.read("dial")["token"]
    requested = head.read("dial")
    head.link(requested["token"]).close(1011)
    near = program.link(token)
    named = {name: requested[name] for name in ("session", "link", "generation")}
    head.send("dial_failed", **named, detail="connection refused")
    with pytest.raises(ConnectionClosedError, match="connection refused"):
        near.recv(WAIT_S)


def test_an_end_whose_other_end_never_comes_is_closed(
    program: Program, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.send("link", link=1, generation=1, rank=0)
    token = program.read("dial")["token"]
    monkeypatch.setattr(links, "TOKEN_LIFE_S", 0.5)
    near = program.link(token)
    with pytest.raises(ConnectionClosedError, match="did not connect"):
        near.recv(WAIT_S)


def test_a_link_lives_on_when_its_tokens_have_expired(
    program: Program, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "TOKEN_LIFE_S", 0.5)
    near, far = join(program, head)
    with pytest.raises(TimeoutError):
        near.recv(0.6)
    near.send(b"still open")
    assert far.recv(WAIT_S) == b"still open"
