"""Callers of the API: tokens and sessions with CSRF are accepted, all others are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from tests.factories import make_token, make_user
from tests.integration.api.conftest import YAML, assert_problem, caller_for

pytestmark = pytest.mark.django_db


def test_no_answer_names_an_authentication_scheme(anonymous):
    response = anonymous.get("/me")
    assert_problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"] == 'Bearer realm="mportal"'


@pytest.mark.parametrize("header", ["Bearer mpt_wrong", "Bearer ", "bearer", "Bearer mpt_ü"])
def test_a_token_that_is_none_is_refused(anonymous, header):
    response = anonymous.get("/me", headers={"Authorization": header})
    assert_problem(response, 401, "authentication_failed")


def test_a_token_is_also_taken_in_lower_case_scheme(member):
    secret = member.headers["Authorization"].partition(" ")[2]
    assert member.get("/me", headers={"Authorization": f"bearer {secret}"}).status_code == 200


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize(
    "ending",
    [
        {"revoked_at": timezone.now()},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_token_that_has_ended_is_refused(ending):
    caller = caller_for(make_user(), **ending)
    assert_problem(caller.get("/me"), 401, "authentication_failed")


def test_the_tokens_of_a_user_who_left_are_refused():
    caller = caller_for(make_user(is_active=False))
    assert_problem(caller.get("/me"), 401, "authentication_failed")


def test_a_broken_token_is_not_saved_by_a_good_session():
    http = Client()
    http.force_login(make_user())
    response = http.get("/api/v1/me", headers={"Authorization": "Bearer mpt_wrong"})
    assert_problem(response, 401, "authentication_failed")


def test_the_use_of_a_token_is_noted_at_most_once_a_minute():
    token, secret = make_token(make_user())
    headers = {"Authorization": f"Bearer {secret}"}
    start = timezone.now()
    for seconds in (0, 30, 61):
        with time_machine.travel(start + timedelta(seconds=seconds), tick=False):
            Client().get("/api/v1/me", headers=headers)
        token.refresh_from_db()
        expected = start if seconds < 60 else start + timedelta(seconds=seconds)
        assert token.last_used_at == expected


def test_a_session_may_read_without_a_csrf_token(member):
    http = Client(enforce_csrf_checks=True)
    http.force_login(member.user)
    assert http.get("/api/v1/me").status_code == 200


def test_a_session_changes_nothing_without_a_csrf_token(member):
    http = Client(enforce_csrf_checks=True)
    http.force_login(member.user)
    response = http.post("/api/v1/projects/rl/jobs", YAML, content_type="application/yaml")
    assert_problem(response, 403, "permission_denied")
    assert "CSRF" in response.json()["detail"]


def test_a_token_needs_no_csrf_token(member):
    http = Client(enforce_csrf_checks=True)
    response = http.post(
        "/api/v1/projects/rl/jobs", YAML, content_type="application/yaml", headers=member.headers
    )
    assert response.status_code == 201


def test_what_a_token_does_is_recorded_with_its_source(member):
    member.http.defaults["REMOTE_ADDR"] = "203.0.113.9"
    job = member.post("/projects/rl/jobs", YAML, content_type="application/yaml").json()
    (event,) = member.get(f"/projects/rl/jobs/{job['id']}/events").json()["results"]
    assert (event["actor"], event["source"]) == (member.user.username, "203.0.113.9")


def test_passwords_are_no_way_in(anonymous):
    get_user_model().objects.create_user("bob", password="secret")
    header = {"Authorization": "Basic Ym9iOnNlY3JldA=="}
    assert_problem(anonymous.get("/me", headers=header), 401, "not_authenticated")
