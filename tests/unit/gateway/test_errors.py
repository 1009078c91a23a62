"""The reasons of a lost session, with the advice that fits who had it."""

from __future__ import annotations

import pytest

from monarch_client.gateway.errors import host_lost, session_lost
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


def test_a_lost_host_without_a_name_is_named_as_pages_and_commands_do() -> None:
    lost = host_lost("Job 7", [0, 3], {0: "gpu-a"})
    assert str(lost).startswith("Job 7 lost gpu-a, node 3. ")
