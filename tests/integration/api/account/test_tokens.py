"""/tokens: a user's own tokens, made, listed, revoked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import ApiToken
from tests.factories import make_project, make_token
from tests.integration.api.conftest import assert_problem, caller_for

pytestmark = pytest.mark.django_db


@pytest.mark.feature("P8.1")
def test_a_new_token_works_and_is_shown_once(member):
    response = member.post("/tokens", {"name": "ci", "days": 30})
    made = response.json()
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    assert ApiToken.objects.get(pk=made["id"]).expires_at > timezone.now() + timedelta(days=29)
    header = {"Authorization": f"Bearer {made['token']}"}
    me = member.http.get("/api/v1/me", headers=header).json()
    assert (me["username"], me["token"]) == (member.user.username, "ci")
    listed = member.get("/tokens").json()["results"]
    assert [row["name"] for row in listed] == ["ci", "test"]
    assert made["token"] not in member.get("/tokens").content.decode()


@pytest.mark.feature("P8.1")
def test_only_a_digest_is_kept(member):
    secret = member.post("/tokens", {"name": "ci"}).json()["token"]
    stored = ApiToken.objects.filter(name="ci").values().get()
    assert secret not in str(stored)


def test_a_token_may_be_bound_to_a_project(member):
    made = member.post("/tokens", {"name": "ci", "project": "rl", "read_only": True}).json()
    assert (made["project"], made["read_only"]) == ("rl", True)


def test_a_project_one_does_not_belong_to_cannot_be_bound(member):
    make_project("secret")
    response = member.post("/tokens", {"name": "ci", "project": "secret"})
    assert_problem(response, 404, "not_found")


@pytest.mark.parametrize(
    ("token", "wanted"),
    [
        ({"read_only": True}, {"read_only": False}),
        ({"bound": True}, {}),
    ],
)
def test_a_token_makes_none_that_reaches_further(member, project, token, wanted):
    bound = {"project": project} if token.pop("bound", False) else {}
    caller = caller_for(member.user, **token, **bound)
    response = caller.post("/tokens", {"name": "wider", **wanted})
    assert_problem(response, 403, "permission_denied")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\0b"},
        {"name": "\ud800"},
        {"name": "x", "days": 0},
        {"name": "x", "days": 10**9},
        {"name": "x", "project": "no slug"},
        {"name": "x", "read_only": "perhaps"},
    ],
)
def test_a_token_that_makes_no_sense_is_a_problem(member, body):
    body = assert_problem(member.post("/tokens", body), 400, "invalid_request")
    assert body["errors"][0]["path"] in {"name", "days", "project", "read_only"}


def test_a_revoked_token_is_gone_at_once(member):
    made = member.post("/tokens", {"name": "ci"}).json()
    header = {"Authorization": f"Bearer {made['token']}"}
    assert member.delete(f"/tokens/{made['id']}").status_code == 204
    assert member.http.get("/api/v1/me", headers=header).status_code == 401
    assert_problem(member.delete(f"/tokens/{made['id']}"), 404, "not_found")


def test_anothers_token_cannot_be_revoked(member, maintainer):
    token, _ = make_token(maintainer.user)
    assert_problem(member.delete(f"/tokens/{token.pk}"), 404, "not_found")
    token.refresh_from_db()
    assert token.revoked_at is None
