"""mportal sessions: who is attached to a job, and the end of a session."""

from __future__ import annotations

from typing import Any

from tests.unit.rest.fake_portal import MOMENT, ok

SESSIONS = "/projects/rl/jobs/42/gateway-sessions"


def row(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "attempt": 1,
        "user": "mia",
        "source": "203.0.113.7",
        "state": "open",
        "created_at": MOMENT,
        "seen_at": MOMENT,
        "ended_at": None,
        "reason": "",
        "bytes_up": 1_500_000,
        "bytes_down": 0,
        "can_end": True,
        **fields,
    }


def test_it_lists_current_sessions_and_with_all_the_ended_ones(portal, mportal) -> None:
    rows = [row(7), row(6, state="closed", ended_at=MOMENT, reason="Ended by mia.")]
    portal.on(f"GET {SESSIONS}", ok({"results": rows, "next": None, "previous": None}))
    current, everything = mportal("sessions", "42"), mportal("sessions", "42", "--all")
    assert "mia" in current.stdout
    assert "1.5" in current.stdout
    assert "closed" not in current.stdout
    assert "Ended by mia." in everything.stdout


def test_it_ends_a_session(portal, mportal) -> None:
    portal.on(f"DELETE {SESSIONS}/7", ok(None, 204))
    done = mportal("sessions", "42", "--end", "7")
    assert done.stdout == "Session 7 was ended.\n"
    assert portal.seen(f"DELETE {SESSIONS}/7")
