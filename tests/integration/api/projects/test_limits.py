"""The limits of a project over REST."""

from __future__ import annotations

from tests.integration.api.conftest import assert_problem

PATH = "/projects/rl/limits"


def test_administrators_set_limits_and_members_see_them(root, viewer, admin, settings):
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    body = {"max_duration_s": 7200, "max_idle_minutes": 30}
    assert root.send("PUT", PATH, body).status_code == 200
    seen = viewer.get(PATH).json()
    assert (seen["max_duration_s"], seen["duration_in_force_s"]) == (7200, 7200)
    assert (seen["max_idle_minutes"], seen["idle_in_force_minutes"]) == (30, 20)
    assert (seen["weight"], seen["may_set"]) == (1, False)
    assert root.send("PUT", PATH, {"max_duration_s": None}).json()["max_idle_minutes"] == 30
    assert viewer.get(PATH).json()["max_duration_s"] is None
    assert_problem(admin.send("PUT", PATH, body), 403, "permission_denied")
    assert_problem(root.send("PUT", PATH, {"max_duration_s": 0}), 400, "invalid_request")
