"""A gateway session needs its rights at each connection, and ends when they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from jobs.actions.accounts.change_user import change_user, end_sessions
from jobs.actions.accounts.set_password import set_password
from jobs.actions.accounts.tokens import revoke_token
from jobs.actions.attempts.gateway_streams import check_terminal, enter_session
from jobs.actions.attempts.open_gateway import open_session
from jobs.actions.projects.members import remove_member, set_role
from jobs.background import hints
from jobs.errors import SessionEndedError
from jobs.gateway import process
from jobs.ground import clock
from jobs.models import Attempt, GatewaySession, UserSession
from jobs.permissions import Actor
from jobs.reconcilers import gateway as reconciler
from jobs.statuses import GatewayState, Role
from tests.factories import make_token, make_user
from tests.integration.gateway.conftest import GatewayThread
from tests.integration.gateway.ends import Program

pytestmark = pytest.mark.usefixtures("transactional_db")


class Opener:
    """The submitter of a job, who opens sessions in a browser or with a token."""

    def __init__(self, attempt: Attempt) -> None:
        self.job, self.user = attempt.job, attempt.job.submitted_by
        self.browser = Client()
        self.browser.force_login(self.user)
        self.token = make_token(self.user)[0]
        self.admin = Actor(make_user(is_superuser=True))

    def terminal(self) -> str:
        """Return the ticket of a terminal in the browser."""
        path = f"/{self.job.project.slug}/jobs/{self.job.pk}/terminal/ticket"
        return str(json.loads(self.browser.post(path).content)["ticket"])

    def rest(self) -> str:
        """Return the ticket of a program that the browser has opened over REST."""
        path = f"/api/v1/projects/{self.job.project.slug}/jobs/{self.job.pk}/gateway-sessions"
        answer = self.browser.post(path, {}, content_type="application/json")
        return str(json.loads(answer.content)["ticket"])

    def laptop(self) -> str:
        """Return the ticket of a program with a token."""
        return open_session(Actor(self.user, self.token), self.job)[1]


@pytest.fixture
def opener(attempt: Attempt) -> Opener:
    return Opener(attempt)


def sign_out(opener: Opener) -> object:
    return opener.browser.post("/sign-out")


def end_all_sessions(opener: Opener) -> object:
    return end_sessions(opener.admin, opener.user.username)


def change_password(opener: Opener) -> object:
    return set_password(Actor(opener.user), "a new one of 20 letters")


def expire(opener: Opener) -> object:
    return UserSession.objects.update(expire_date=clock.now() - timedelta(seconds=1))


def end_token(opener: Opener) -> object:
    return revoke_token(Actor(opener.user), opener.token.pk)


def become_viewer(opener: Opener) -> object:
    return set_role(opener.admin, opener.job.project, opener.user.username, Role.VIEWER)


def leave(opener: Opener) -> object:
    return remove_member(opener.admin, opener.job.project, opener.user.username)


def be_disabled(opener: Opener) -> object:
    return change_user(opener.admin, opener.user.username, is_active=False)


OF_BROWSERS = [sign_out, end_all_sessions, change_password]
OF_ALL = [become_viewer, leave, be_disabled]
CASES = [
    *((Opener.terminal, loss) for loss in (*OF_BROWSERS, expire, *OF_ALL)),
    (Opener.rest, sign_out),
    *((Opener.laptop, loss) for loss in (end_token, *OF_ALL)),
]


@pytest.mark.parametrize(("opens", "loss"), CASES)
def test_neither_a_ticket_nor_an_open_session_outlives_the_rights_that_opened_it(
    opener: Opener,
    monkeypatch: pytest.MonkeyPatch,
    opens: Callable[[Opener], str],
    loss: Callable[[Opener], object],
) -> None:
    unused, used = opens(opener), opens(opener)
    secret = enter_session(used).secret
    sent: list[str] = []
    monkeypatch.setattr(hints, "_send", lambda name, _row: sent.append(name))
    loss(opener)
    assert "gateway" in sent or loss is expire
    for ticket in (unused, secret):
        with pytest.raises(SessionEndedError):
            enter_session(ticket)
    assert not GatewaySession.objects.current().exists()
    assert all(GatewaySession.objects.values_list("reason", flat=True))


@pytest.mark.parametrize("loss", [*OF_BROWSERS, *OF_ALL])
def test_a_connected_terminal_ends_with_its_browsers_session(
    opener: Opener, loss: Callable[[Opener], object]
) -> None:
    enter_session(opener.terminal())
    loss(opener)
    for session_id in reconciler.due():
        reconciler.step(session_id)
    assert GatewaySession.objects.get().state == GatewayState.CLOSED


def test_a_connected_session_ends_although_no_worker_process_runs(
    opener: Opener, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CHECK_S", 0.0)
    program = Program(gateway.url, opener.terminal())
    gateway.look()
    sign_out(opener)
    gateway.look()
    assert "signed in" in program.read("close")["detail"]
    assert program.is_closed()


def test_the_ticket_of_a_terminal_opens_none_after_the_sign_out(opener: Opener) -> None:
    ticket = opener.terminal()
    check_terminal(ticket)
    sign_out(opener)
    with pytest.raises(SessionEndedError):
        check_terminal(ticket)


def test_sessions_of_tokens_and_other_browsers_go_on_after_a_sign_out(opener: Opener) -> None:
    enter_session(opener.laptop())
    other, opener.browser = opener.browser, Client()
    opener.browser.force_login(opener.user)
    enter_session(opener.terminal())
    other.post("/sign-out")
    for session_id in reconciler.due():
        reconciler.step(session_id)
    assert GatewaySession.objects.current().count() == 2
