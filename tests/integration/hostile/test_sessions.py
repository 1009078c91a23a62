"""Sessions, cookies and hosts: what a browser holds is its own, and every way on stays inside."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import Job
from jobs.statuses import JobStatus
from tests.each_case import check_each
from tests.factories import make_job, make_user
from tests.integration.web.conftest import browser_of

PASSWORD = "correct horse battery"
EVIL = "<script>evil()</script>"

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(project, no_broker) -> Job:
    return make_job(project, status=JobStatus.FAILED)


LEADS_OUT = [
    "//evil.example",
    "///evil.example",
    "\\\\evil.example",
    "/\\evil.example",
    "https:evil.example",
    "https://evil.example",
    "http:///evil.example",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "%2F%2Fevil.example",
    "/%09/evil.example",
    "/\t/evil.example",
    "\t//evil.example",
    "/\n/evil.example",
    " //evil.example",
    "/a\r\nSet-Cookie: a=b",
    "//127.0.0.1@evil.example",
    "\0//evil.example",
]


def test_no_way_to_go_on_leads_out_of_the_portal():
    user = make_user("ada", password=PASSWORD)

    def check(wanted: str) -> None:
        form = {"username": "ada", "password": PASSWORD, "next": wanted}
        link = create_sign_in_link(user)
        sent = [
            Client().post("/sign-in", form),
            Client().post(f"/sign-in/once/{link}", {"next": wanted}),
            Client().post("/settings/theme", {"theme": "dark", "next": wanted}),
            browser_of(user).get("/sign-in", {"next": wanted}),
        ]
        for answer in sent:
            assert answer.status_code == 302
            assert "Set-Cookie" not in answer["Location"] or "%0D%0A" in answer["Location"]
            assert re.match(r"/(?![/\\\t])", answer["Location"]), answer["Location"]
            assert not re.search(r"[\r\n\t\\]", answer["Location"])

    check_each(LEADS_OUT, check)


def test_a_session_is_a_new_one_at_sign_in_and_gone_at_sign_out(settings):
    make_user("ada", password=PASSWORD)
    visitor = Client()
    planted = visitor.session
    planted["planted"] = True
    planted.save()
    before = planted.session_key
    form = {"username": "ada", "password": PASSWORD}
    visitor.post("/sign-in", form)
    during = visitor.session.session_key
    assert during != before
    assert not type(planted)().exists(before)
    visitor.post("/sign-out")
    assert not type(planted)().exists(during)
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = during
    assert thief.get("/settings/tokens").status_code == 302


def test_cookies_are_for_this_portal_alone_and_scripts_never_see_the_session(settings):
    make_user("ada", password=PASSWORD)
    visitor = Client()
    visitor.get("/sign-in")
    visitor.post("/sign-in", {"username": "ada", "password": PASSWORD})
    session = visitor.cookies[settings.SESSION_COOKIE_NAME]
    csrf = visitor.cookies[settings.CSRF_COOKIE_NAME]
    assert session["httponly"] and session["samesite"] == "Lax" and not session["domain"]
    assert csrf["samesite"] == "Lax" and not csrf["domain"]
    visitor.post("/settings/theme", {"theme": "dark", "next": "/"})
    assert visitor.cookies["theme"]["samesite"] == "Lax"
    visitor.post("/settings/theme", {"theme": "evil; Domain=example", "next": "/"})
    assert visitor.cookies["theme"].value == "dark"


def test_a_forged_cookie_signs_no_user_in_and_harms_nothing(settings):
    for value in ("x", "\u00e4", "a" * 5000, "../../etc/passwd", "' OR 1=1--"):
        visitor = Client()
        visitor.cookies[settings.SESSION_COOKIE_NAME] = value
        visitor.cookies["theme"] = EVIL
        answer = visitor.get("/sign-in")
        assert answer.status_code == 200
        assert "<script>evil" not in answer.content.decode()


def test_a_browsers_changes_over_rest_take_a_csrf_token(job):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(job.submitted_by)
    jobs = "/api/v1/projects/rl/jobs"
    for method, path in (
        ("post", jobs),
        ("post", f"{jobs}/validate"),
        ("post", f"{jobs}/{job.pk}/actions/rerun"),
        ("post", f"{jobs}/{job.pk}/actions/cancel"),
        ("post", "/api/v1/projects/rl/uploads"),
        ("post", "/api/v1/tokens"),
        ("delete", f"{jobs}/{job.pk}"),
    ):
        answer = getattr(strict, method)(path, b"{}", content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), path
    assert Job.objects.count() == 1


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1@evil.example", "127.0.0.1:x", "a b"])
def test_a_host_that_is_not_the_portals_is_refused_and_never_repeated(host):
    for path in ("/sign-in", "/api/v1/me", "/rl/jobs"):
        answer = Client().get(path, headers={"Host": host})
        assert answer.status_code == 400
        assert "evil" not in answer.content.decode()
        assert "evil" not in str(answer.headers)
    forwarded = Client().get("/sign-in", headers={"X-Forwarded-Host": "evil.example"})
    assert "evil" not in forwarded.content.decode()
