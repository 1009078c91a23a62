"""Sessions: who is admitted, with what, and what becomes of the row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from jobs.gateway import listeners
from jobs.ground import clock
from jobs.models import Attempt, GatewayHead, GatewaySession
from jobs.statuses import GatewayState, JobKind, JobStatus
from tests.factories import make_attempt, make_job
from tests.integration.gateway.conftest import GatewayThread, session
from tests.integration.gateway.ends import HELLO, Head, Program, raw, refusal
from tests.waiting import eventually

NewTicket = Callable[[], str]


def test_a_program_learns_the_mesh_from_the_heads_hello(program: Program) -> None:
    assert program.welcome["away_limit_s"] == 300
    mesh = program.read("mesh")
    assert {name: mesh[name] for name in HELLO} == HELLO
    assert session().state == GatewayState.OPEN
    assert GatewayHead.objects.get().hello["python"] == "3.11.7"


def test_a_head_that_comes_later_is_announced(
    gateway: GatewayThread, ticket: NewTicket, attempt: Attempt
) -> None:
    program = Program(gateway.url, ticket())
    assert program.read("head_away")
    head = Head(gateway.url, attempt)
    assert program.read("mesh")["workers"] == HELLO["workers"]
    head.close()
    assert program.read("head_away")
    assert eventually(lambda: not GatewayHead.objects.exists())


def test_a_certificate_request_reaches_the_head_and_its_answer_the_program(
    program: Program, head: Head
) -> None:
    program.send("sign", id=7, csr="PEM")
    requested = head.read("sign")
    assert (requested["csr"], requested["session"]) == ("PEM", program.welcome["session"])
    head.send("signed", id=requested["id"], leaf="LEAF", ca="CA", not_after=1)
    answer = program.read("signed")
    assert (answer["id"], answer["leaf"], answer["ca"]) == (7, "LEAF", "CA")


def test_a_ticket_opens_one_connection(gateway: GatewayThread, ticket: NewTicket) -> None:
    once = ticket()
    Program(gateway.url, once).close()
    assert refusal(gateway.url, "session", once)[0] == 401


def test_a_ticket_expires(gateway: GatewayThread, ticket: NewTicket) -> None:
    late = ticket()
    GatewaySession.objects.update(created_at=clock.now() - timedelta(seconds=61))
    assert refusal(gateway.url, "session", late)[0] == 401


def test_each_welcome_brings_a_new_secret_and_ends_the_one_before_the_last(
    gateway: GatewayThread, program: Program
) -> None:
    first = program.secret
    second = Program(gateway.url, first).secret
    # The welcome may be lost: the secret that was used is good until its successor is.
    third = Program(gateway.url, first).secret
    assert refusal(gateway.url, "session", second)[0] == 401
    Program(gateway.url, third).close()
    assert refusal(gateway.url, "session", first)[0] == 401


def test_a_session_without_its_stream_is_away_and_comes_back(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    program.close()
    assert eventually(lambda: session().state == GatewayState.AWAY)
    back = Program(gateway.url, program.secret)
    assert back.read("mesh")
    assert session().state == GatewayState.OPEN


def test_a_session_that_was_away_for_too_long_stays_away(
    gateway: GatewayThread, program: Program
) -> None:
    program.close()
    assert eventually(lambda: session().state == GatewayState.AWAY)
    GatewaySession.objects.update(seen_at=clock.now() - timedelta(seconds=301))
    status, text = refusal(gateway.url, "session", program.secret)
    assert (status, "5 minutes" in text) == (410, True)


def test_a_session_that_ends_is_closed_at_both_ends(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    over = {"ended_at": clock.now(), "state": GatewayState.CLOSED, "reason": "Ended by root."}
    GatewaySession.objects.update(**over)
    gateway.look()
    assert program.read("close")["detail"] == "Ended by root."
    assert program.is_closed()
    assert head.read("close")["session"] == program.welcome["session"]
    assert refusal(gateway.url, "session", program.secret)[0] == 410


def test_the_head_cleans_up_after_a_session_that_is_lost(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    program.close()
    assert eventually(lambda: session().state == GatewayState.AWAY)
    gateway.look()
    GatewaySession.objects.update(ended_at=clock.now(), state=GatewayState.LOST)
    gateway.look()
    assert head.read("close")["session"] == program.welcome["session"]


def test_the_head_cleans_up_after_a_session_that_came_and_ended_between_two_looks(
    gateway: GatewayThread, head: Head, ticket: NewTicket
) -> None:
    gateway.look()
    program = Program(gateway.url, ticket())
    program.close()
    assert eventually(lambda: session().state == GatewayState.AWAY)
    GatewaySession.objects.update(ended_at=clock.now(), state=GatewayState.LOST)
    gateway.look()
    assert head.read("close")["session"] == program.welcome["session"]


def test_a_head_learns_which_sessions_go_on_when_it_comes_back(
    gateway: GatewayThread, program: Program, head: Head, ticket: NewTicket, attempt: Attempt
) -> None:
    gateway.look()
    ended = program.welcome["session"]
    assert head.read("sessions")["sessions"] == [ended]
    head.close()
    assert program.read("head_away")
    program.send("close")
    assert eventually(lambda: session().state == GatewayState.CLOSED)
    later = Program(gateway.url, ticket())
    again = Head(gateway.url, attempt)
    assert later.read("mesh")
    gateway.look()
    assert again.read("sessions")["sessions"] == [later.welcome["session"]]
    later.close()
    again.close()


def test_a_program_may_close_its_session(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    program.send("close")
    assert program.is_closed()
    assert head.read("close")
    assert session().state == GatewayState.CLOSED


def test_a_session_that_the_head_gives_up_is_lost_with_its_reason(
    gateway: GatewayThread, program: Program, head: Head
) -> None:
    head.send("session_lost", session=program.welcome["session"], detail="Away for 301 s.")
    assert eventually(lambda: session().state == GatewayState.LOST)
    gateway.look()
    assert program.read("close")["detail"] == "Away for 301 s."
    assert head.read("close")["session"] == program.welcome["session"]


def test_a_head_gives_up_sessions_of_its_own_attempt_only(
    gateway: GatewayThread, program: Program
) -> None:
    other = make_attempt(make_job(status=JobStatus.RUNNING, kind=JobKind.MONARCH))
    stranger = Head(gateway.url, other)
    stranger.send("session_lost", session=program.welcome["session"], detail="mine now")
    stranger.send("hello", attempt=other.pk, **{**HELLO, "python": "3.12.1"})
    assert eventually(
        lambda: GatewayHead.objects.filter(attempt=other, hello__python="3.12.1").exists()
    )
    assert session().state == GatewayState.OPEN
    stranger.close()


def test_a_dead_program_does_not_delay_the_renewal_of_leases(
    gateway: GatewayThread, head: Head, ticket: NewTicket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "CLOSE_TIMEOUT_S", 60.0)
    dead = raw(gateway.url, "session", ticket())  # it never answers a close
    assert eventually(lambda: len(gateway.gateway.exchange.sessions) == 1)
    GatewaySession.objects.update(ended_at=clock.now(), state=GatewayState.CLOSED)
    before = clock.now()
    gateway.run(asyncio.wait_for(gateway.gateway.look(), 5))
    assert GatewayHead.objects.get().expires_at > before + timedelta(seconds=9)
    assert head.read("close")
    dead.close()
