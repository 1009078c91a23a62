"""mportal login, whoami, project, token; and what to do without a portal or a project."""

from __future__ import annotations

import httpx

from monarch_client.rest.config import Config, load
from tests.unit.rest.fake_portal import MOMENT, ok, page, problem

RL = {"slug": "rl", "name": "RL", "role": "member"}
ME = {"username": "alice", "is_admin": False, "token": "laptop", "projects": [RL]}
TOKEN = {
    "id": 3,
    "name": "ci",
    "project": "",
    "read_only": True,
    "created_at": MOMENT,
    "expires_at": None,
    "last_used_at": None,
}
NOBODY = Config()


def test_login_keeps_what_works(mportal, portal, own_config):
    portal.on("GET /me", ok(ME))
    result = mportal("login", "--url", "https://p.example/", "--token", "mpt_a", config=NOBODY)
    assert result.exit_code == 0
    assert load({}) == Config("https://p.example", "mpt_a", "")
    assert portal.requests[0].headers["Authorization"] == "Bearer mpt_a"
    assert str(portal.requests[0].url) == "https://p.example/api/v1/me"
    assert "alice" in result.stderr


def test_login_asks_for_what_is_missing_and_hides_the_token(mportal, portal):
    portal.on("GET /me", ok(ME))
    result = mportal("login", config=NOBODY, input="localhost:8000\nmpt_typed\n")
    assert load({}) == Config("http://localhost:8000", "mpt_typed", "")
    assert "http://localhost:8000/settings/tokens" in result.stderr
    assert "mpt_typed" not in result.stdout + result.stderr


def test_login_keeps_nothing_that_does_not_work(mportal, portal, own_config):
    portal.on("GET /me", problem(401, "authentication_failed", "This token is unknown."))
    result = mportal("login", "--url", "https://p.example", "--token", "mpt_a", config=NOBODY)
    assert result.exit_code == 125
    assert "This token is unknown." in result.stderr
    assert not own_config.exists()


def test_without_signing_in_a_user_learns_how(mportal):
    result = mportal("ps", config=NOBODY)
    assert result.exit_code == 125
    assert "mportal login" in result.stderr


def test_a_portal_that_is_away_is_named(mportal, portal):
    portal.on("GET /me", httpx.ReadError("reset"))
    # Rerun is sent once only, so that this takes no time.
    portal.on("POST /projects/rl/jobs/1/actions/rerun", httpx.ReadError("reset"))
    result = mportal("rerun", "1")
    assert result.exit_code == 125
    assert "Cannot reach the portal at http://portal: reset." in result.stderr


def test_a_portal_that_stays_away_for_a_while_is_reported_once(mportal, portal):
    portal.on("GET /me", *[httpx.ConnectError("refused")] * 6, ok(ME))
    assert mportal("whoami").stderr == (
        "The portal at http://portal does not answer; trying again ...\n"
    )


def test_whoami_reports_projects_and_roles(mportal, portal):
    portal.on("GET /me", ok(ME))
    assert mportal("whoami").stdout == "alice at http://portal, token laptop\n  rl: member\n"
    assert mportal("whoami", "-q").stdout == "alice\n"


def test_projects_are_listed(mportal, portal):
    portal.on("GET /projects", page([RL]))
    assert mportal("project", "ls").stdout.splitlines()[1].split() == ["rl", "RL", "member"]
    assert mportal("project", "ls", "-q").stdout == "rl\n"


def test_ones_only_project_need_not_be_named(mportal, portal):
    portal.on("GET /projects", page([RL]))
    portal.on("GET /projects/rl/jobs", page([]))
    assert mportal("ps", config=Config("http://portal", "mpt_x")).exit_code == 0


def test_of_several_projects_one_must_be_named(mportal, portal):
    portal.on("GET /projects", page([RL, {**RL, "slug": "vision"}]))
    result = mportal("ps", config=Config("http://portal", "mpt_x"))
    assert result.exit_code == 2
    assert "rl, vision" in result.stderr


def test_tokens_are_listed_made_and_revoked(mportal, portal):
    portal.on("GET /tokens", page([TOKEN]))
    portal.on("POST /tokens", ok({**TOKEN, "token": "mpt_new"}, 201))
    portal.on("DELETE /tokens/3", ok(None, 200))
    assert mportal("token", "ls").stdout.splitlines()[1].split()[:3] == ["3", "ci", "(all)"]
    assert mportal("token", "create", "ci", "--read-only", "--days", "7").stdout == "mpt_new\n"
    assert mportal("token", "create", "ci", "-q").stdout == "mpt_new\n"
    assert mportal("token", "revoke", "3").stdout == "Token 3: revoked\n"


def test_the_help_lists_every_command(mportal):
    text = mportal("--help").stdout
    for word in ("login", "submit", "run", "ps", "get", "logs", "wait", "cancel", "rerun"):
        assert f"\n  {word} " in text
