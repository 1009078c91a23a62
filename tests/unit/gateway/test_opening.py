"""Opening a session ends those of programs of this machine that were killed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from monarch_client.errors import ClientError
from monarch_client.gateway import opening

URL = "http://portal.example"


class Client:
    """A portal that has one session of a killed program; others have ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def open_gateway_session(self, *job: object) -> object:
        self.calls.append(("open", *job))
        return SimpleNamespace(id=9, ticket="ticket")

    def end_gateway_session(self, *session: object) -> None:
        self.calls.append(("end", *session))
        if session[-1] != 7:
            raise ClientError("There is no such session.")


def test_sessions_of_killed_programs_end_before_another_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client()
    notes = [
        opening.Opening(url, "job 3", session, "", project="rl", number=3).note
        for url, session in ((URL, 6), (URL, 7), ("http://other.example", 8))
    ]
    monkeypatch.setattr(opening, "sweep_notes", lambda: notes)
    monkeypatch.setattr(opening, "signed_in", lambda _config: client)
    config = SimpleNamespace(url=URL, project="rl", token="")
    monkeypatch.setattr(opening, "load", lambda _environment: config)
    with opening.opened_session("rl/4", None) as opened:
        assert (opened.project, opened.number, opened.session) == ("rl", 4, 9)
    assert client.calls == [("end", "rl", 3, 6), ("end", "rl", 3, 7), ("open", "rl", 4, None)]
