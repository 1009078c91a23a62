"""mportal admin user."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.rest.fake_portal import MOMENT, ok, page

NORA: dict[str, Any] = {
    "username": "nora", "is_active": True, "is_admin": False, "has_password": True,
    "created_at": MOMENT, "last_sign_in_at": None, "link_expires_at": None, "sessions": 2,
    "projects": [{"project": "rl", "role": "viewer"}],
}  # fmt: skip
LINK = {"username": "nora", "url": "http://portal/sign-in/once/x", "expires_at": MOMENT}
SESSION = {"id": "ab12", "signed_in_at": MOMENT, "expires_at": MOMENT, "address": "::1",
           "browser": "Firefox", "is_current": False}  # fmt: skip


def user(*words: str) -> tuple[str, ...]:
    return ("admin", "user", *words)


def test_all_pages_of_users_are_listed(mportal, portal):
    first = {"results": [NORA], "next": "nora", "previous": None}
    portal.on("GET /users", ok(first), page([{**NORA, "username": "otto"}]))
    shown = mportal(*user("ls", "-s", "o", "--state", "active"))
    assert "rl (viewer)" in shown.stdout
    assert "otto" in shown.stdout
    assert [each.url.params["cursor"] for each in portal.requests] == ["", "nora"]


def test_links_are_printed_alone_for_programs(mportal, portal):
    portal.on("POST /users", ok(LINK, 201))
    portal.on("POST /users/nora/actions/link", ok(LINK))
    invited = mportal(*user("invite", "nora", "-p", "rl", "--hours", "3", "-q"))
    assert invited.stdout == f"{LINK['url']}\n"
    body = json.loads(portal.requests[-1].content)
    assert body == {"username": "nora", "project": "rl", "role": "member", "hours": 3}
    assert LINK["url"] in mportal(*user("link", "nora")).stdout


def test_users_are_changed_and_signed_out(mportal, portal):
    portal.on("PATCH /users/nora", ok(NORA))
    portal.on("GET /users/nora/sessions", page([SESSION]))
    portal.on("DELETE /users/nora/sessions", ok(None, 204))
    portal.on("DELETE /users/nora/sessions/ab12", ok(None, 204))
    assert mportal(*user("disable", "nora")).stdout == "nora: disabled\n"
    assert mportal(*user("enable", "nora")).stdout == "nora: enabled\n"
    assert mportal(*user("admin", "nora", "--grant")).stdout == "nora: administrator\n"
    sent = [json.loads(each.content) for each in portal.seen("PATCH /users/nora")]
    assert sent == [{"is_active": False}, {"is_active": True}, {"is_admin": True}]
    assert mportal(*user("sessions", "nora", "-q")).stdout == "ab12\n"
    assert mportal(*user("end-sessions", "nora", "ab12")).exit_code == 0
    assert mportal(*user("end-sessions", "nora")).stdout == "nora: all sessions ended\n"
