"""Users over REST, for administrators of the installation."""

from __future__ import annotations

from django.test import Client

from jobs.models import UserSession
from jobs.statuses import Role
from tests.factories import make_member, make_user
from tests.integration.api.conftest import assert_problem, caller_for


def test_an_invitation_answers_with_the_link_and_the_user_is_listed(root, project):
    body = {"username": "nora", "project": "rl", "role": "viewer", "hours": 3}
    made = root.post("/users", body)
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    assert made.json()["url"].startswith("http://testserver/sign-in/once/")
    (row,) = root.get("/users", {"q": "nor"}).json()["results"]
    assert row["projects"] == [{"project": "rl", "role": "viewer"}]
    assert (row["link_expires_at"], row["has_password"]) == (made.json()["expires_at"], False)
    assert_problem(root.post("/users", body), 409, "conflict")
    assert_problem(root.post("/users", {"username": "x", "hours": 0}), 400, "invalid_request")


def test_the_list_is_paged_and_filtered_in_a_fixed_number_of_queries(
    root, project, django_assert_max_num_queries
):
    for number in range(5):
        make_member(project, Role.VIEWER, username=f"u{number}", is_active=number > 0)
    with django_assert_max_num_queries(8):
        first = root.get("/users", {"q": "u", "limit": 3}).json()
    rest = root.get("/users", {"q": "u", "limit": 3, "cursor": first["next"]}).json()
    names = [row["username"] for row in [*first["results"], *rest["results"]]]
    assert [name for name in names if name.startswith("u") and len(name) == 2] == [
        f"u{number}" for number in range(5)
    ]
    disabled = root.get("/users", {"state": "disabled"}).json()["results"]
    assert [row["username"] for row in disabled] == ["u0"]


def test_a_user_is_disabled_and_signed_out_by_an_administrator_alone(root, admin):
    nora = make_user("nora")
    Client().force_login(nora)
    (row,) = root.get("/users/nora/sessions").json()["results"]
    assert row["id"] not in UserSession.objects.get(user=nora).session_key
    for refused in (
        admin.get("/users"),
        admin.get("/users/nora"),
        admin.get("/users/nobody"),
        admin.get("/users/nora/sessions"),
        admin.send("PATCH", "/users/nora", {"is_active": False}),
        admin.delete("/users/nora/sessions"),
        caller_for(root.user, read_only=True).post("/users", {"username": "x"}),
        caller_for(root.user, project=None, read_only=True).delete("/users/nora/sessions"),
    ):
        assert_problem(refused, 403, "permission_denied")
    assert root.delete(f"/users/nora/sessions/{row['id']}").status_code == 204
    assert not UserSession.objects.filter(user=nora).exists()
    changed = root.send("PATCH", "/users/nora", {"is_active": False}).json()
    assert (changed["is_active"], changed["is_admin"]) == (False, False)
    assert_problem(root.get("/users/nobody"), 404, "not_found")
    assert_problem(root.get("/users/%00"), 404, "not_found")


def test_own_sessions_are_listed_as_me(member):
    Client().force_login(member.user)
    (row,) = member.get("/users/me/sessions").json()["results"]
    assert row["is_current"] is False
    assert member.delete("/users/me/sessions").status_code == 204
    assert member.get("/users/me/sessions").json()["results"] == []
