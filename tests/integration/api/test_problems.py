"""Every error leaves as problem+json, and reveals nothing about the inside."""

from __future__ import annotations

import itertools
import logging
import re

import pytest
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.test import Client
from django.urls import URLPattern
from rest_framework import exceptions

from jobs import errors
from jobs.api.base.errors import problem_of
from jobs.api.urls import urlpatterns
from tests.each_case import check_each
from tests.integration.api.conftest import assert_problem
from tests.undone import undone


def all_portal_errors(kind=errors.PortalError):
    return [kind, *(e for sub in kind.__subclasses__() for e in all_portal_errors(sub))]


@pytest.mark.feature("P7.2")
def test_every_error_of_the_portal_keeps_its_code():
    def check(kind: type[errors.PortalError]) -> None:
        body = assert_problem_of(kind(), kind.http_status, kind.code)
        assert body["detail"] == kind().message

    check_each(all_portal_errors(), check)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Http404(), 404, "not_found"),
        (PermissionDenied(), 403, "permission_denied"),
        (SuspiciousOperation("odd"), 400, "bad_request"),
        (BadRequest("odd"), 400, "bad_request"),
        (exceptions.Throttled(wait=7), 429, "throttled"),
        (exceptions.NotAcceptable(), 406, "not_acceptable"),
        (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
    ],
)
def test_errors_of_the_frameworks_are_problems_too(error, status, code):
    assert_problem_of(error, status, code)


def test_a_throttled_caller_learns_when_to_come_back():
    assert problem_of(exceptions.Throttled(wait=7))["Retry-After"] == "7"


def test_only_the_errors_of_a_specification_leave_with_the_problem():
    body = assert_problem_of(errors.StaleJobError(job=7), 409, "stale_job")
    assert set(body) == {"type", "title", "status", "code", "detail"}


def test_a_bug_is_logged_and_answered_without_its_inside(viewer, project, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("jobs.api.jobs.job_views.job_table", broken)
    with caplog.at_level(logging.ERROR, logger="jobs.api.base.errors"):
        response = viewer.get("/projects/rl/jobs")
    assert_problem(response, 500, "internal_error")
    assert b"hunter2" not in response.content
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("path", ["/", "/nothing", "/projects/rl/jobs/", "/projects/r%20l"])
def test_an_address_that_is_none_is_a_problem(anonymous, path):
    assert_problem(anonymous.get(path), 404, "not_found")


@pytest.mark.django_db
def test_a_name_with_a_nul_in_an_address_is_not_found(root, project):
    routes = [str(each.pattern) for each in urlpatterns if isinstance(each, URLPattern)]
    named = [route for route in routes if re.search("<(name|str|path):", route)]
    parts = {"slug": "rl", "name": "%00", "str": "%00", "path": "a%00"}

    def check(route: str) -> None:
        path = re.sub(r"<(\w+):\w+>", lambda found: parts[found[1]], route)
        for method in ("DELETE", "POST", "PUT"):
            answer = root.send(method, f"/{path}", {"role": "member", "value": "x"})
            assert answer.status_code in {404, 405}, (method, path, answer.status_code)

    check_each(named, check)


METHODS = ("POST", "PUT", "PATCH", "DELETE", "TRACE", "FETCH")
PARTS = {"slug": "rl", "int": "999", "name": "none", "str": "none", "path": "none"}


@pytest.mark.django_db
def test_every_refusal_of_a_method_is_a_problem(stranger, anonymous):
    routes = [str(each.pattern) for each in urlpatterns if isinstance(each, URLPattern)]
    http = Client(enforce_csrf_checks=True)

    def check(route: str) -> None:
        path = re.sub(r"<(\w+):\w+>", lambda found: PARTS[found[1]], route)
        for caller, method in itertools.product((stranger, anonymous), METHODS):
            with undone():
                url = f"/api/v1/{path}"
                answer = http.generic(method, url, "", "application/json", headers=caller.headers)
            about = (method, answer.status_code, answer.headers)
            if answer.status_code >= 400:
                assert answer["Content-Type"] == "application/problem+json", about
            assert answer.status_code != 405 or answer["Allow"], about

    check_each([each for each in routes if each], check)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_health_check_by_another_method_is_refused_without_a_page(path):
    answer = Client(enforce_csrf_checks=True).post(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_an_answer_in_a_language_the_api_does_not_speak_is_a_problem(member):
    response = member.get("/me", headers={"Accept": "text/csv"})
    assert_problem(response, 406, "not_acceptable")


@pytest.mark.django_db
def test_a_request_keeps_the_id_it_came_with(member):
    assert member.get("/me", headers={"X-Request-ID": "abc-1"})["X-Request-ID"] == "abc-1"


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>"])
def test_a_request_without_a_usable_id_is_given_one(member, given):
    assert len(member.get("/me", headers={"X-Request-ID": given})["X-Request-ID"]) == 32


@pytest.mark.django_db
def test_answers_name_the_portals_version(member):
    assert member.get("/me")["X-Mportal-Version"]


def assert_problem_of(error, status, code):
    response = problem_of(error)
    response.json = lambda: __import__("json").loads(response.content)
    return assert_problem(response, status, code)
