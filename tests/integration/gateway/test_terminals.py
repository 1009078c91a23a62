"""Terminals of browsers: the gateway is the program's end, with the tickets of shells alone."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from jobs.actions.attempts.open_gateway import ShellPurpose, open_session
from jobs.gateway.listeners import TERMINAL
from jobs.models import Attempt
from jobs.permissions import Actor
from jobs.statuses import GatewayState
from tests.integration.gateway.conftest import GatewayThread, session
from tests.integration.gateway.ends import WAIT_S, Head
from tests.waiting import eventually


def browser(gateway: GatewayThread, ticket: str) -> ClientConnection:
    address = f"{gateway.url.replace('http', 'ws', 1)}/gateway/v1/terminal"
    opening = connect(address, subprotocols=[TERMINAL, Subprotocol(ticket)], proxy=None)
    return opening.__enter__()


def shell_ticket(attempt: Attempt) -> str:
    return open_session(Actor(attempt.job.submitted_by), attempt.job, ShellPurpose(1))[1]


def test_a_terminal_opens_its_session_has_its_key_signed_and_ends_it(
    gateway: GatewayThread, head: Head, attempt: Attempt
) -> None:
    opened = browser(gateway, shell_ticket(attempt))
    assert opened.subprotocol == TERMINAL
    opened.send(json.dumps({"rank": 1, "rows": 30, "columns": 90}))
    request = head.read("sign")
    assert request["csr"].startswith("-----BEGIN CERTIFICATE REQUEST")
    head.send("refused", id=request["id"], session=request["session"], detail="No key today.")
    assert json.loads(opened.recv(WAIT_S)) == {"error": "No key today."}
    with pytest.raises(ConnectionClosed):
        opened.recv(WAIT_S)
    assert eventually(lambda: session().state == GatewayState.CLOSED)


@pytest.mark.parametrize("first", ['{"rank": Infinity}', '{"rows": null}', "[]", '{"columns": 0}'])
def test_a_malformed_first_message_is_refused(
    gateway: GatewayThread,
    head: Head,
    attempt: Attempt,
    first: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened = browser(gateway, shell_ticket(attempt))
    opened.send(first)
    assert json.loads(opened.recv(WAIT_S)) == {"error": "The browser's message is malformed."}
    assert "malformed" not in caplog.text
    assert "failed" not in caplog.text


def test_only_the_unused_ticket_of_a_shell_opens_a_terminal(
    gateway: GatewayThread, head: Head, attempt: Attempt
) -> None:
    other = open_session(Actor(attempt.job.submitted_by), attempt.job)[1]
    for wrong in ("mpg_unknown", other):
        with pytest.raises(InvalidStatus, match="401"):
            browser(gateway, wrong)
