"""mportal project and mportal members."""

from __future__ import annotations

import json

from tests.unit.rest.fake_portal import ok, page

RL = {"slug": "rl", "name": "RL", "role": "admin", "state": "active", "archived_at": None}
ADA = {"username": "ada", "role": "admin", "is_active": True}


def test_archived_projects_are_listed_where_they_are_requested(mportal, portal):
    portal.on("GET /projects", page([{**RL, "state": "archived"}]))
    assert mportal("project", "ls", "--archived", "-q").stdout == "rl\n"
    assert portal.requests[-1].url.params["state"] == "archived"


def test_a_project_is_renamed(mportal, portal):
    portal.on("PATCH /projects/rl", ok({**RL, "slug": "robots", "name": "Robots"}))
    result = mportal("project", "rename", "rl", "robots", "--name", "Robots")
    assert result.stdout == "rl: now robots (Robots)\n"
    assert json.loads(portal.requests[-1].content) == {"slug": "robots", "name": "Robots"}
    assert mportal("project", "rename", "rl").exit_code == 2


def test_laptops_are_allowed_in_a_project(mportal, portal):
    portal.on("PATCH /projects/rl", ok({**RL, "laptops_may_attach": True}))
    assert mportal("project", "laptops", "rl", "--allow").stdout == "rl: laptops may attach\n"
    assert json.loads(portal.requests[-1].content) == {"laptops_may_attach": True}
    assert mportal("project", "laptops", "rl").exit_code == 2


def test_a_project_is_archived_and_unarchived(mportal, portal):
    portal.on("POST /projects/rl/actions/archive", ok({**RL, "state": "archived"}))
    portal.on("POST /projects/rl/actions/unarchive", ok(RL))
    assert mportal("project", "archive", "rl").stdout == "rl: archived\n"
    assert mportal("project", "unarchive", "rl").stdout == "rl: active\n"


def test_deleting_sends_the_name_that_was_typed(mportal, portal):
    portal.on("DELETE /projects/rl", ok(None, 204))
    result = mportal("project", "delete", "rl", input="RL\n")
    assert (result.exit_code, portal.requests[-1].url.params["confirm"]) == (0, "RL")
    assert mportal("project", "delete", "rl", "--confirm", "rl").stdout == "rl: deleted\n"
    assert portal.requests[-1].url.params["confirm"] == "rl"


def test_members_are_listed_set_and_removed(mportal, portal):
    portal.on("GET /projects/rl/members", page([ADA, {**ADA, "username": "max"}]))
    portal.on("PUT /projects/rl/members/a.b@c", ok({**ADA, "username": "a.b@c", "role": "viewer"}))
    for name in ("ada", "max"):
        portal.on(f"DELETE /projects/rl/members/{name}", ok(None, 204))
    assert mportal("members", "list", "-q").stdout == "ada\nmax\n"
    assert mportal("members", "set", "a.b@c", "viewer").stdout == "a.b@c: viewer\n"
    assert json.loads(portal.requests[-1].content) == {"role": "viewer"}
    assert mportal("members", "remove", "ada", "max").stdout == "ada: removed\nmax: removed\n"
    assert mportal("members", "set", "ada", "owner").exit_code == 2


def test_limits_are_shown_and_set(mportal, portal):
    limits = {
        "max_duration_s": None, "max_idle_minutes": 30, "duration_in_force_s": 43200,
        "idle_in_force_minutes": 30, "weight": 2, "may_set": True,
    }  # fmt: skip
    portal.on("GET /projects/rl/limits", ok(limits))
    portal.on("PUT /projects/rl/limits", ok(limits))
    shown = mportal("project", "limits", "rl").stdout
    assert shown == "rl: max-duration 12 h\nrl: max-idle 30 min\nrl: weight 2\n"
    change = ("admin", "project", "limits", "rl")
    assert mportal(*change, "--max-duration", "none", "--max-idle", "30").stdout == shown
    assert json.loads(portal.requests[-1].content) == {
        "max_duration_s": None, "max_idle_minutes": 30
    }  # fmt: skip
    for wrong in ((), ("--max-duration", "12"), ("--max-idle", "long")):
        assert mportal(*change, *wrong).exit_code == 2
