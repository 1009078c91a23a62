"""Headers of every page: nothing inline runs, leaks, or leads out."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import Attempt, Job, Worker
from jobs.statuses import JobStatus, Role, StopReason
from tests.each_case import check_each
from tests.factories import make_attempt, make_job, make_member, make_project, make_user
from tests.integration.web.conftest import Browser, browser_of
from tests.integration.web.test_authorisation import LEAST, THREADED, path_of

CHECKOUT = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse battery"
# What would act, if a page or a script took it for more than words.
EVIL = "<script>evil()</script><img src=x onerror=evil()>'\"--></textarea></title>{{7*7}}${evil}"
SHORT = "<b onclick=evil()>'\""

pytestmark = pytest.mark.django_db

# Of each, an answer that is no page: errors, redirects, files.
OTHER_ADDRESSES = [
    "/nothing/here/at/all",
    "/rl/jobs/999999",
    "/other/jobs",
    "/rl/jobs?cursor=made-up",
    "/api/v1/docs",
    "/api/v1/openapi",
    "/api/v1/nothing",
    "/api/v1/me",
    "/static/jobs/js/app.js",
    "/static/nothing.js",
]
PAGES = sorted({name for method, name in LEAST if method == "get"} - THREADED)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> None:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def job() -> Job:
    """Create a job that has hostile text in every field that takes it."""
    project = make_project("rl", name=EVIL[:60])
    make_project("other")
    user = make_member(project, Role.ADMIN, username=SHORT)
    job = make_job(
        project,
        name=SHORT,
        status=JobStatus.FAILED,
        submitted_by=user,
        stop_reason=StopReason.USER_CODE,
        message=EVIL,
        hint=f"`{EVIL}`",
        spec_source=f"run: {EVIL!r}",
        queue_name=SHORT,
    )
    attempt: Attempt = make_attempt(
        job, message=EVIL, hint=EVIL, stop_reason=StopReason.USER_CODE, ended_at=job.created_at
    )
    attempt.stages.create(
        name="run", started_at=job.created_at, ended_at=job.created_at, failure=EVIL, detail=EVIL
    )
    Worker.objects.create(
        attempt=attempt, rank=0, mesh=SHORT, address=EVIL, python=SHORT[:20], detail=EVIL
    )
    job.events.create(kind="note", verb=SHORT[:10], message=EVIL, actor=user, source=EVIL[:40])
    return job


@pytest.fixture
def browser(job) -> Browser:
    return browser_of(job.submitted_by)


class Tags(HTMLParser):
    """A collector of what would run, load from elsewhere or change the page's base."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    @classmethod
    def wrong_in(cls, text: str) -> list[str]:
        found = cls()
        found.feed(text)
        return found.wrong

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "script" and not values.get("src", "").startswith("/static/"):
            self.wrong.append("inline script")
        if tag in {"style", "base", "iframe", "object", "embed"}:
            self.wrong.append(tag)
        self.wrong += [name for name in values if name == "style" or name.startswith("on")]
        self.wrong += [v for v in values.values() if v.lower().strip().startswith("javascript:")]


def answers(job: Job, browser: Client) -> dict[str, Any]:
    """Return an answer from every address, pages and others, by its path."""
    paths = [path_of(name, job_id=job.pk) for name in PAGES] + OTHER_ADDRESSES
    found = {path: browser.get(path) for path in paths}
    found |= {
        f"{tab} tab": browser.get(f"/rl/jobs/{job.pk}/{tab}") for tab in ("events", "workers")
    }
    visitor = Client()
    link = create_sign_in_link(make_user("linked"))
    found["sign in"] = visitor.get("/sign-in", {"next": EVIL})
    found["wrong"] = visitor.post("/sign-in", {"username": EVIL, "password": "x", "next": EVIL})
    found["link"] = visitor.get(f"/sign-in/once/{link}", {"next": EVIL})
    found["used link"] = visitor.post("/sign-in/once/made-up")
    found["refused spec"] = browser.post("/rl/jobs/new", {"source": EVIL})
    found["refused member"] = browser.post("/rl/members", {"username": EVIL, "role": EVIL})
    found["refused token"] = browser.post("/settings/tokens", {"name": EVIL * 9, "project": EVIL})
    found["new token"] = browser.post("/settings/tokens", {"name": EVIL[:100], "days": "30"})
    strict = Client(enforce_csrf_checks=True)
    found["no csrf"] = strict.post("/sign-in", {"username": EVIL})
    found["no csrf api"] = strict.post("/api/v1/tokens")
    found["bad host"] = visitor.get("/sign-in", headers={"Host": "evil.example"})
    found["wrong method"] = visitor.post("/healthz")
    found["too many fields"] = visitor.post("/sign-in", dict.fromkeys(map(str, range(1100)), "x"))
    for answer in found.values():
        answer.close()  # a static file is open until then
    return found


def test_nothing_is_inline_on_any_page_or_error_and_every_answer_has_its_security_headers(
    job, browser
):
    for name, answer in answers(job, browser).items():
        text = "" if answer.streaming else answer.content.decode(errors="replace")
        if "html" in answer.get("Content-Type", ""):
            assert Tags.wrong_in(text) == [], name
        assert answer["X-Content-Type-Options"] == "nosniff", name
        assert answer["Referrer-Policy"] == "same-origin", name
        assert not [h for h in answer.headers if h.lower().startswith("access-control-")], name
        if name == "/static/jobs/js/app.js":
            continue  # no document: nothing can frame it or run in it
        policy = answer.get("Content-Security-Policy", "")
        assert "script-src 'self'" in policy and "unsafe" not in policy, name
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, name
        assert answer["X-Frame-Options"] == "DENY", name


def test_nothing_but_styles_and_scripts_is_stored_on_the_way(job, browser):
    for name, answer in answers(job, browser).items():
        is_kept = "no-store" not in answer.get("Cache-Control", "")
        assert is_kept == (name == "/static/jobs/js/app.js"), name


def test_what_people_and_jobs_write_is_words_on_every_page(job, browser):
    seen = 0
    for name, answer in answers(job, browser).items():
        if "html" not in answer.get("Content-Type", ""):
            continue
        text = answer.content.decode(errors="replace")
        assert "<script>evil" not in text, name
        assert "<img src=x" not in text, name
        assert "<b onclick" not in text, name
        assert "49" not in re.findall(r"'\"--&gt;.*?(\d+)\$\{", text), name
        seen += html.escape(EVIL)[:40] in text or html.escape(SHORT) in text
    assert seen >= 8, "evil was shown, as words"


CLIMBING = [
    "/static/../manage.py",
    "/static/%2e%2e/manage.py",
    "/static/..%2fmanage.py",
    "/static/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/static//etc/passwd",
    "/static/..\\manage.py",
    "/static/jobs/%00.js",
    "/static/jobs/js/app.js/../../../../manage.py",
    "/static/jobs/",
    "/static/",
    "/media/uploads",
    "/blobs/uploads",
    "/.env",
    "/api/v1/projects/rl/uploads/..%2f..%2fsecret",
    "/api/v1/projects/..%2f/jobs",
]


@pytest.mark.parametrize("debug", [False, True])
def test_no_path_climbs_out_of_what_is_served(job, browser, debug, settings):
    settings.DEBUG = debug

    def check(path: str) -> None:
        answer = browser.get(path)
        assert answer.status_code in {302, 400, 401, 404}
        assert b"DJANGO_SETTINGS_MODULE" not in answer.content
        assert b"root:" not in answer.content

    check_each(CLIMBING, check)


@pytest.mark.parametrize(
    "odd",
    [
        "\0",
        "a\0b",
        "\N{GRINNING FACE}" * 50,
        "x" * 20_000,
        "%",
        "'\"",
        "\r\nX-Evil: 1",
        "-1",
        "9" * 40,
    ],
)
def test_odd_values_in_every_field_and_query_are_no_error_of_the_server(job, browser, odd):
    sent = [
        browser.get("/rl/jobs", {"q": odd, "user": odd, "status": odd, "kind": odd, "cursor": odd}),
        browser.get("/rl/jobs/live", {"q": odd, "cursor": odd}),
        browser.get(f"/rl/jobs/{job.pk}", {"attempt": odd}),
        browser.get("/rl/jobs/new", {"from": odd, "example": odd}),
        browser.post("/rl/jobs/new", {"source": odd, "key": odd}),
        browser.post("/rl/members", {"username": odd, "role": odd}),
        browser.post("/rl/members", {"username": odd, "role": "viewer"}),
        browser.post("/rl/members/role", {"username": odd, "role": "viewer"}),
        browser.post("/rl/members/remove", {"username": odd}),
        browser.post("/settings/tokens", {"name": odd, "project": odd, "days": odd}),
        browser.post("/settings/theme", {"theme": odd, "next": odd}),
        browser.post("/settings/password", {"new_password1": odd, "new_password2": odd}),
        Client().post("/sign-in", {"username": odd, "password": odd, "next": odd}),
    ]
    for answer in sent:
        assert answer.status_code < 500, answer
        assert "X-Evil" not in answer.headers


def test_the_settings_of_a_real_server_pass_djangos_own_checks():
    environment = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": "postgresql://portal:none@127.0.0.1:1/portal",
        "REDIS_URL": "redis://127.0.0.1:1",
        "MPORTAL_URL": "https://portal.example.org",
        "MPORTAL_DATABASE_CONNECTIONS": "0",
        "SECRET_KEY": "only-for-the-checks-0123456789-abcdefghijklmnopqrstuvwxyz",
    }
    reported = """
from django.conf import settings as s
import django
django.setup()
from django.core.management import call_command
call_command("check", deploy=True, fail_level="WARNING")
assert s.SESSION_COOKIE_SECURE and s.CSRF_COOKIE_SECURE and s.SECURE_SSL_REDIRECT
assert s.SESSION_COOKIE_HTTPONLY and s.SECURE_HSTS_SECONDS > 0 and not s.DEBUG
"""
    environment["DJANGO_SETTINGS_MODULE"] = "monarch_portal.settings"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", reported],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
