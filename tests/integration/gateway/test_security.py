"""The gateway refuses strangers, keeps jobs apart, and survives what either end may send."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from jobs.actions.attempts.open_gateway import ShellPurpose, end_session, open_session
from jobs.attempt_tokens import attempt_token, driver_token
from jobs.gateway.messages import Link
from jobs.ground import clock
from jobs.models import Attempt
from jobs.permissions import Actor
from jobs.statuses import GatewayState, JobKind, JobStatus
from tests.factories import make_attempt, make_job, make_project, make_token
from tests.integration.gateway.conftest import GatewayThread, session
from tests.integration.gateway.ends import WAIT_S, Head, Program, join, raw, refusal
from tests.waiting import eventually

MEGABYTE = 1024 * 1024


@pytest.fixture
def strangers(gateway: GatewayThread) -> tuple[Head, Program]:
    """Connect the head of a job of another project, and a program of its submitter."""
    project = make_project(laptops_may_attach=True)
    other = make_job(project, status=JobStatus.RUNNING, kind=JobKind.MONARCH)
    head = Head(gateway.url, make_attempt(other))
    _, ticket = open_session(Actor(other.submitted_by), other)
    return head, Program(gateway.url, ticket)


@pytest.mark.parametrize("path", ["session", "head", "link"])
def test_each_path_takes_its_own_tokens_only(
    gateway: GatewayThread, attempt: Attempt, ticket: Callable[[], str], path: str
) -> None:
    job = attempt.job
    tokens = {
        "": "nothing",
        make_token(job.submitted_by)[1]: "api",
        driver_token(attempt.pk, job.pk, 1): "driver",
        attempt_token(job.pk, attempt.number): "head",
        ticket(): "session",
        "mpg_" + "x" * 43: "made up",
    }
    refused = {
        name for token, name in tokens.items() if refusal(gateway.url, path, token)[0] == 401
    }
    assert refused == set(tokens.values()) - {path}


@pytest.mark.parametrize("more", ["Authorization: Bearer other", "Authorization: Bearer \u00e9"])
def test_a_request_with_no_single_ascii_token_is_refused(
    gateway: GatewayThread, attempt: Attempt, more: str
) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    with raw(gateway.url, "head", f"{token}\r\n{more}") as opened:
        assert opened.recv(100).startswith(b"HTTP/1.1 401 ")


def test_the_head_of_an_attempt_that_has_ended_is_refused(
    gateway: GatewayThread, attempt: Attempt
) -> None:
    Attempt.objects.update(ended_at=clock.now())
    token = attempt_token(attempt.job_id, attempt.number)
    assert refusal(gateway.url, "head", token)[0] == 410


def test_a_head_reaches_sessions_of_its_own_attempt_only(
    program: Program, head: Head, strangers: tuple[Head, Program]
) -> None:
    near, far = join(program, head)
    program.send("sign", id=1, csr="PEM")
    request = head.read("sign")["id"]
    session = program.welcome["session"]
    stranger, its_program = strangers
    its_program.read("mesh")
    stranger.send("signed", id=request, session=session, leaf="FORGED")
    stranger.send("dial_failed", session=session, link=1, generation=1, detail="forged")
    stranger.send("lost_hosts", ranks=[0])
    its_program.read("lost_hosts")
    head.send("signed", id=request, leaf="LEAF")
    head.send("lost_hosts", ranks=[7])
    assert program.read("signed")["leaf"] == "LEAF"
    assert program.read("lost_hosts")["ranks"] == [7]
    near.send(b"open")
    assert far.recv(WAIT_S) == b"open"


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        "{}",
        '{"op": 1}',
        '{"op": "link", "link": 1, "generation": 1, "rank": Infinity}',
        "[" * 10_000,
        b"bytes",
        json.dumps("x" * MEGABYTE),
    ],
    ids=["text", "list", "empty", "number", "infinity", "deep", "bytes", "oversized"],
)
def test_a_control_message_that_is_none_ends_its_stream_alone(
    program: Program, head: Head, text: str | bytes
) -> None:
    program.stream.send(text)
    assert program.is_closed()
    head.send("lost_hosts", ranks=[1])
    assert not head.stream.close_code


@pytest.mark.parametrize("link", [None, -1, 2**60, "1", True, [1]])
def test_a_link_with_an_impossible_number_is_refused(
    program: Program, head: Head, link: object
) -> None:
    program.send("link", link=link, generation=1)
    assert "link" in program.read("refused")["detail"]
    program.send("link", link=5, generation=1)
    assert head.read("dial")["link"] == 5


@pytest.mark.parametrize(
    "target",
    [
        {"rank": 1},
        {"rank": "0"},
        {"kind": "shell"},
        {"kind": ["worker"]},
        {"kind": "node", "rank": 2},
    ],
)
def test_a_link_to_what_the_head_does_not_have_is_refused(
    program: Program, head: Head, target: dict[str, object]
) -> None:
    program.send("link", link=1, generation=1, **target)
    assert program.read("refused")["link"] == 1
    program.send("link", link=2, generation=1, rank=0, kind="proxy")
    dial = head.read("dial")
    assert (dial["link"], dial["rank"], dial["kind"]) == (2, 0, "proxy")
    program.send("link", link=3, generation=1, rank=1, kind="node")
    dial = head.read("dial")
    assert (dial["link"], dial["rank"], dial["kind"]) == (3, 1, "node")


def test_a_session_for_shells_reaches_no_workers(
    gateway: GatewayThread, head: Head, attempt: Attempt
) -> None:
    actor = Actor(attempt.job.submitted_by)
    program = Program(gateway.url, open_session(actor, attempt.job, ShellPurpose(1))[1])
    for number, kind in enumerate(("worker", "proxy")):
        program.send("link", link=number, generation=1, kind=kind)
        assert program.read("refused")["link"] == number
    program.send("link", link=3, generation=1, rank=1, kind="node")
    assert head.read("dial")["kind"] == "node"
    program.close()


def test_the_head_gets_the_kind_of_a_session_and_nothing_of_it_after_its_end(
    gateway: GatewayThread, head: Head, attempt: Attempt
) -> None:
    actor = Actor(attempt.job.submitted_by)
    session, ticket = open_session(actor, attempt.job, ShellPurpose(1))
    program = Program(gateway.url, ticket)
    program.send("link", link=3, generation=1, rank=1, kind="node")
    assert head.read("dial")["session_kind"] == "ssh"
    stream = gateway.gateway.exchange.sessions[session.pk]
    end_session(actor, attempt.job, session.pk)
    gateway.look()
    program.read("close")
    late = Link(link=4, generation=1, rank=1, kind="node")
    gateway.run(gateway.gateway.exchange.from_session(stream, late))
    assert 4 not in stream.links
    program.close()


def test_requests_for_signatures_are_numbered_and_limited(program: Program, head: Head) -> None:
    program.send("sign", id="x" * 1000, csr="PEM")
    assert "id" in program.read("refused")["detail"]
    for number in range(9):
        program.send("sign", id=number, csr="PEM")
    requests = [head.read("sign")["id"] for _ in range(8)]
    assert program.read("refused")["id"] == 8
    head.send("signed", id=requests[0], leaf="LEAF")
    assert program.read("signed")["id"] == 0
    program.send("sign", id=9, csr="PEM")
    assert head.read("sign")


def test_requests_that_a_lost_head_leaves_unanswered_do_not_count(
    gateway: GatewayThread, attempt: Attempt, program: Program, head: Head
) -> None:
    for number in range(8):
        program.send("sign", id=number, csr="PEM")
        head.read("sign")
    head.close()
    program.read("head_away")
    following = Head(gateway.url, attempt)
    program.read("mesh")
    program.send("sign", id=8, csr="PEM")
    assert following.read("sign")
    following.close()


def test_links_that_were_replaced_keep_no_tokens(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    for generation in range(1, 21):
        program.send("link", link=1, generation=generation)
        head.read("dial")
        program.read("dial")
    assert len(gateway.gateway.exchange._tokens) == 2
    program.close()
    assert eventually(lambda: not gateway.gateway.exchange._tokens)


def test_a_field_that_is_not_known_is_not_passed_on(program: Program, head: Head) -> None:
    head.send("lost_hosts", ranks=[1], self="self")
    assert program.read("lost_hosts") == {"op": "lost_hosts", "ranks": [1]}


@pytest.mark.parametrize("odd", ["\0", "\ud800", float("nan")])
def test_what_a_head_sends_that_no_row_can_hold_is_refused(
    gateway: GatewayThread, head: Head, program: Program, odd: object, caplog: Any
) -> None:
    session_id = program.welcome["session"]
    other = Head(gateway.url, Attempt.objects.get())
    for op, fields in (("session_lost", {"session": session_id}), ("hello", {"python": odd})):
        other.send(op, detail=odd, **fields)
    other.send("session_lost", session=session_id, detail="It was away.")
    if odd == "\0":
        assert [other.read("refused")["detail"].split(":")[0] for _ in range(2)] == [
            "The message session_lost is malformed",
            "The message hello is malformed",
        ]
        assert eventually(lambda: session().state == GatewayState.LOST)
    else:
        assert other.is_closed()  # it is no JSON
    assert not [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]


def test_links_of_a_session_are_limited(program: Program, head: Head) -> None:
    for number in range(65):
        program.send("link", link=number, generation=1)
    assert [head.read("dial")["link"] for _ in range(64)] == list(range(64))
    assert program.read("refused")["link"] == 64


def test_text_on_a_data_link_ends_it(program: Program, head: Head) -> None:
    near, far = join(program, head)
    near.send("text")
    for end in (near, far):
        with pytest.raises(ConnectionClosed):
            end.recv(WAIT_S)


def test_a_slow_reader_stops_its_sender_and_costs_little_memory(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    total, sent = 256, 0
    near, far = join(program, head)

    def send() -> None:
        nonlocal sent
        for _ in range(total):
            near.send(b"x" * MEGABYTE)
            sent += 1

    seen = -1

    def has_stalled() -> bool:
        nonlocal seen
        before, seen = seen, sent
        return seen == before > 0

    thread = threading.Thread(target=send)
    thread.start()
    assert eventually(has_stalled)
    assert sent < total
    connections = gateway.gateway.listeners.connections
    assert max(each.transport.get_write_buffer_size() for each in connections) < 3 * MEGABYTE
    assert sum(len(far.recv(WAIT_S)) for _ in range(total)) == total * MEGABYTE
    thread.join(WAIT_S)
    assert not thread.is_alive()
