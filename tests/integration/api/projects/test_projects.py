"""/me, /projects and /projects/{slug}: what the caller can see."""

from __future__ import annotations

import pytest

from jobs.models import AuditEntry, Membership, Project, User
from jobs.statuses import JobStatus, Role
from tests.factories import make_job, make_project
from tests.integration.api.conftest import assert_problem, caller_for


def test_one_sees_ones_own_projects_with_ones_role(member):
    make_project("hidden")
    Membership.objects.create(project=make_project("alpha"), user=member.user, role=Role.ADMIN)
    rows = member.get("/projects").json()["results"]
    assert [(row["slug"], row["role"]) for row in rows] == [("alpha", "admin"), ("rl", "member")]
    me = member.get("/me").json()
    assert me["projects"] == rows
    assert (me["username"], me["is_admin"]) == (member.user.username, False)


def test_a_bound_token_sees_its_project_alone(member, project):
    Membership.objects.create(project=make_project("alpha"), user=member.user, role=Role.ADMIN)
    caller = caller_for(member.user, project=project, read_only=True)
    assert [row["slug"] for row in caller.get("/projects").json()["results"]] == ["rl"]
    assert caller.get("/me").json()["read_only"] is True


def test_a_project_counts_its_jobs(viewer, project):
    for status in (JobStatus.QUEUED, JobStatus.QUEUED, JobStatus.FAILED):
        make_job(project, status=status)
    body = viewer.get("/projects/rl").json()
    assert body["job_counts"] == {"QUEUED": 2, "FAILED": 1}
    assert body["role"] == "viewer"


@pytest.mark.parametrize("slug", ["other", "nothing", "x" * 300])
def test_a_project_one_may_not_see_does_not_exist(viewer, slug):
    make_project("other")
    assert_problem(viewer.get(f"/projects/{slug}"), 404, "not_found")


def test_an_administrator_makes_a_project_and_is_its_first_admin(root):
    made = root.send("POST", "/projects", {"slug": "rl-two", "name": "RL, two"})
    assert made.status_code == 201
    assert made.json() == {
        "slug": "rl-two",
        "name": "RL, two",
        "role": "admin",
        "state": "active",
        "archived_at": None,
        "laptops_may_attach": False,
    }
    again = root.send("POST", "/projects", {"slug": "rl-two"})
    assert_problem(again, 409, "conflict")
    wrong = root.send("POST", "/projects", {"slug": "RL 2", "name": "a\nb"})
    assert_problem(wrong, 422, "invalid_settings")
    assert [row["path"] for row in wrong.json()["errors"]] == ["slug", "name"]


def test_no_other_user_makes_projects(admin):
    assert_problem(admin.send("POST", "/projects", {"slug": "mine"}), 403, "permission_denied")
    assert not Project.objects.filter(slug="mine").exists()


def test_a_project_is_renamed_archived_and_deleted_over_rest(admin, project):
    renamed = admin.send("PATCH", "/projects/rl", {"slug": "robots", "name": "Robots"})
    assert renamed.status_code == 200
    assert (renamed.json()["slug"], renamed.json()["name"]) == ("robots", "Robots")
    assert admin.get("/projects/rl").json()["slug"] == "robots"
    archived = admin.post("/projects/robots/actions/archive").json()
    assert archived["state"] == "archived" and archived["archived_at"]
    assert admin.get("/projects").json()["results"] == []
    rows = admin.get("/projects", {"state": "archived"}).json()["results"]
    assert [row["slug"] for row in rows] == ["robots"]
    refused = admin.post("/projects/robots/jobs", {"spec": {"run": "true"}})
    assert "archived" in assert_problem(refused, 403, "permission_denied")["detail"]
    assert admin.post("/projects/robots/actions/unarchive").json()["state"] == "active"
    assert_problem(admin.delete("/projects/robots"), 422, "invalid_settings")
    assert admin.delete("/projects/robots?confirm=robots").status_code == 204
    assert_problem(admin.get("/projects/robots"), 404, "not_found")


def test_administrators_alone_are_shown_what_is_left_of_a_deleted_project(admin, project, root):
    admin.delete("/projects/rl?confirm=rl")
    assert admin.get("/projects", {"state": "deleted"}).json()["results"] == []
    [row] = root.get("/projects", {"state": "deleted"}).json()["results"]
    assert row["slug"] == f"rl_{project.pk}"
    assert root.get(f"/projects/{row['slug']}/usage").status_code == 200
    assert_problem(
        root.post(f"/projects/{row['slug']}/actions/unarchive"), 403, "permission_denied"
    )


def test_an_admin_of_a_project_allows_laptops_and_it_is_audited(project):
    admin = User.objects.create_user("admin-of-rl")
    Membership.objects.create(project=project, user=admin, role=Role.ADMIN)
    caller = caller_for(admin)
    assert caller.get("/projects/rl").json()["laptops_may_attach"] is False
    body = caller.send("PATCH", "/projects/rl", {"laptops_may_attach": True}).json()
    assert (body["laptops_may_attach"], body["slug"]) == (True, "rl")
    entry = AuditEntry.objects.get(verb="allow_laptops")
    assert (entry.before, entry.after) == (
        {"laptops_may_attach": False},
        {"laptops_may_attach": True},
    )


def test_a_refused_rename_leaves_laptops_as_they_were(root, project):
    changes = {"laptops_may_attach": True, "slug": "Not A Slug"}
    assert_problem(root.send("PATCH", "/projects/rl", changes), 422, "invalid_settings")
    project.refresh_from_db()
    assert not project.laptops_may_attach


def test_who_is_no_admin_of_the_project_may_not_allow_laptops(member):
    assert_problem(
        member.send("PATCH", "/projects/rl", {"laptops_may_attach": True}), 403, "permission_denied"
    )


def test_me_sets_the_times_of_pages_and_leaves_what_is_not_named(member):
    assert (
        member.send("PATCH", "/me", {"time_zone": "Asia/Tokyo"}).json()["time_zone"] == "Asia/Tokyo"
    )
    me = member.send("PATCH", "/me", {"hour_format": "12"}).json()
    assert (me["time_zone"], me["hour_format"]) == ("Asia/Tokyo", "12")
    assert_problem(member.send("PATCH", "/me", {"time_zone": "Mars/Base"}), 422, "invalid_zone")
    assert_problem(member.send("PATCH", "/me", {"hour_format": "13"}), 400, "invalid_request")


def test_a_limited_token_changes_no_account(member, project):
    for limits in ({"read_only": True}, {"project": project}):
        caller = caller_for(member.user, **limits)
        assert_problem(caller.send("PATCH", "/me", {"hour_format": "12"}), 403, "permission_denied")
