"""Members over REST: listed, added, given another role, removed."""

from __future__ import annotations

from jobs.models import Membership
from jobs.statuses import Role
from tests.factories import make_member, make_user
from tests.integration.api.conftest import assert_problem


def test_an_admin_adds_a_member_changes_the_role_and_removes_them(admin, project):
    make_user("a.b+c@d")
    address = "/projects/rl/members/a.b+c@d"
    added = admin.send("PUT", address, {"role": "viewer"})
    row = {"username": "a.b+c@d", "role": "viewer", "is_active": True}
    assert (added.status_code, added.json()) == (200, row)
    assert admin.send("PUT", address, {"role": "maintainer"}).json()["role"] == "maintainer"
    rows = admin.get("/projects/rl/members").json()["results"]
    assert [each["role"] for each in rows] == ["maintainer", "admin"]
    assert admin.delete(address).status_code == 204
    assert_problem(admin.delete(address), 404, "not_found")


def test_the_last_admin_is_neither_demoted_nor_removed_over_rest(admin, project):
    own = f"/projects/rl/members/{admin.user.username}"
    assert_problem(admin.delete(own), 409, "conflict")
    assert_problem(admin.send("PUT", own, {"role": "member"}), 409, "conflict")
    assert Membership.objects.get(project=project).role == Role.ADMIN


def test_an_unknown_user_or_one_without_a_role_is_refused(admin, project):
    def put(name: str, role: str):
        return admin.send("PUT", f"/projects/rl/members/{name}", {"role": role})

    make_member(project, Role.VIEWER, username="vic")
    assert_problem(put("nobody", "member"), 404, "not_found")
    assert_problem(put("%00", "member"), 404, "not_found")
    assert_problem(put("vic", "owner"), 400, "invalid_request")
    assert_problem(admin.delete("/projects/rl/members/%00"), 404, "not_found")
