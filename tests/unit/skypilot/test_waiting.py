"""The outcome of a request, which is polled because the server's answer may be lost."""

from __future__ import annotations

import pytest

from monarch_client.skypilot import waiting
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.rows import Row
from monarch_client.skypilot.waiting import accepted, ended


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "ACCEPT_LOOK_S", 0.0)


class Server:
    """A server whose answers are lost if `loses`, and which lists requests a few polls late."""

    def __init__(self, *, loses: bool = False, takes: bool = True, late: int = 0) -> None:
        self.rows: list[Row] = [{"request_id": "old", "name": "launch", "status": "SUCCEEDED"}]
        self._loses, self._takes, self._late = loses, takes, late
        self.requested = 0

    def ask(self) -> str:
        self.requested += 1
        if self._takes:
            self.rows.insert(0, {"request_id": "other", "name": "status", "status": "RUNNING"})
            self.rows.insert(0, {"request_id": "new", "name": "launch", "status": "PENDING"})
        if self._loses:
            raise TimeoutError("read timed out")
        return "new"

    def requests(self) -> list[Row]:
        if self.requested and self._late:
            self._late -= 1
            return self.rows[2:]
        return self.rows


@pytest.mark.parametrize("server", [Server(), Server(loses=True), Server(loses=True, late=3)])
def test_a_request_that_was_taken_is_found_and_never_repeated(server: Server) -> None:
    found = accepted("launch", server.ask, server.requests, lost=TimeoutError, patience_s=5)
    assert found == "new"
    assert server.requested == 1


def test_a_request_without_an_answer_is_an_error() -> None:
    server = Server(loses=True, takes=False)
    with pytest.raises(TimeoutError):
        accepted("launch", server.ask, server.requests, lost=TimeoutError, patience_s=0.05)
    assert server.requested == 1


def test_a_refusal_is_not_looked_up() -> None:
    def refuse() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        accepted("launch", refuse, list, lost=TimeoutError)


def test_waiting_ends_with_the_request() -> None:
    looks = iter(["PENDING", "RUNNING", "CANCELLED"])
    assert ended(lambda: [{"status": next(looks)}], "r", 5) == {"status": "CANCELLED"}


def test_waiting_has_a_bound() -> None:
    with pytest.raises(StillBusyError):
        ended(lambda: [{"status": "RUNNING"}], "r", 0.1)


@pytest.mark.parametrize("request_id", ["r", ""])
def test_a_request_that_the_server_forgot_is_not_waited_for(request_id: str) -> None:
    with pytest.raises(SkyPilotError) as raised:
        ended(list, request_id, 5)
    assert raised.value.kind == "not_found"
