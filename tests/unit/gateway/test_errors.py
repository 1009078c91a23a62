"""The reasons of a lost session, with the advice that fits who had it."""

from __future__ import annotations

import pytest

from monarch_client.gateway.errors import session_lost
from monarch_client.runner.gateway.links import NODE, WORKER


@pytest.mark.parametrize(
    ("away_s", "kind", "message"),
    [
        (0, NODE, "The session was ended by the portal (The job has ended)."),
        (
            301,
            NODE,
            "The session was ended after 301 s away (The job has ended). Run the command again.",
        ),
        (
            0,
            WORKER,
            (
                "The session was ended by the portal (The job has ended). Its calls are never "
                "answered: start the program again, from its last checkpoint."
            ),
        ),
    ],
)
def test_only_a_program_is_advised_to_start_from_its_checkpoint(
    away_s: float, kind: str, message: str
) -> None:
    assert str(session_lost(away_s, "The job has ended.", kind)) == message
