"""Rules for every page: a strict policy, nothing inline, CSRF, names for everything."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.statuses import JobStatus, Role
from tests.each_case import check_each
from tests.factories import (
    make_attempt,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_template,
    make_user,
)
from tests.integration.web.conftest import browser_of
from tests.sample_frames import tell_of_hosts

pytestmark = pytest.mark.django_db

OWN_PAGES = [
    "/settings",
    "/settings/tokens",
    "/settings/password",
    "/settings/time",
    "/settings/help/docs/README.md",
    "/settings/help-search?q=log",
    "/settings/whats-new",
    "/settings/machines",
    "/settings/projects",
    "/settings/sessions",
    "/settings/notifications",
]
ADMINISTRATION = [
    "/settings/users",
    "/settings/users/root",
    "/settings/all-projects",
    "/settings/queues",
    "/settings/queues/default",
    "/settings/pools",
    "/settings/quotas",
    "/settings/clouds",
    "/settings/add-cloud/slurm",
]
PROJECT_PAGES = [
    "/rl",
    "/rl/jobs",
    "/rl/jobs/new",
    "/rl/history?name=hello",
    "/rl/compare?jobs={job},{other}",
    "/rl/members",
    "/rl/settings",
    "/rl/settings/budget",
    "/rl/settings/policies",
    "/rl/machines",
    "/rl/queue",
    "/rl/queue/timeline",
    "/rl/secrets",
    "/rl/usage",
    "/rl/schedules",
    "/rl/schedules/nightly",
    "/rl/new-schedule",
    "/rl/templates",
    "/rl/templates/grid",
    "/rl/new-template",
    "/rl/jobs/{job}",
    "/rl/jobs/{job}/spec",
    "/rl/jobs/{job}/charts",
    "/rl/jobs/{job}/graph",
    "/rl/jobs/{job}/nodes",
    "/rl/jobs/{job}/nodes?show=metrics",
    "/rl/jobs/{job}/nodes?show=stacks",
    "/rl/jobs/{job}/terminal",
]
MISSING = "/rl/jobs/999999"
PAGES = [*OWN_PAGES, *ADMINISTRATION, *PROJECT_PAGES, "/sign-in", "/sign-in/once/{link}", MISSING]


def rendered() -> dict[str, Any]:
    """Render every page for its reader, by its path."""
    project = make_project("rl")
    admin = browser_of(make_member(project, Role.ADMIN))
    root = browser_of(make_user("root", is_superuser=True))
    job = make_job(project, status=JobStatus.RUNNING, spec_source="run: '<b>'")
    other = make_job(project, status=JobStatus.FAILED, spec_source="run: 'b'")
    attempt = make_attempt(job)
    tell_of_hosts(attempt, 2, gpus=2)
    make_schedule(project, "nightly", spec_source="run: '<b>'").runs.create(
        slot=job.created_at, outcome="submitted", job=job
    )
    make_template(project)
    found = {}
    for path in PAGES:
        client = Client() if path.startswith("/sign-in") else admin
        client = root if path in ADMINISTRATION else client
        client.raise_request_exception = False
        found[path] = client.get(
            path.format(job=job.pk, other=other.pk, link=create_sign_in_link(admin.user))
        )
    return found


@pytest.fixture(scope="module")
def pages(django_db_setup, django_db_blocker) -> dict[str, Any]:
    """Render every page once for all rules."""
    with django_db_blocker.unblock(), transaction.atomic():
        found = rendered()
        transaction.set_rollback(True)
    return found


def check_pages(pages: dict[str, Any], rule: Callable[[Any, str], None]) -> None:
    """Check that every page keeps the rule, which takes the answer and its text."""
    check_each(pages, lambda path: rule(pages[path], pages[path].content.decode()))


def test_every_page_is_there(pages):
    def rule(page: Any, _html: str) -> None:
        assert page.status_code == (404 if page is pages[MISSING] else 200)

    check_pages(pages, rule)


@pytest.mark.parametrize("path", ["/settings/nowhere", "/rl/jobs/", "/a/b/c/d"])
def test_a_guessed_address_is_answered_in_the_words_of_the_portal(path):
    project = make_project("rl")
    page = browser_of(make_member(project, Role.VIEWER, username="vera")).get(path)
    html = page.content.decode()
    assert page.status_code == 404
    assert "This page does not exist" in html
    assert "Resolver404" not in html
    # The frame of a signed-in user leads on.
    assert "Account: vera" in html
    assert "Resolver404" not in Client().get(path).content.decode()


def test_nothing_is_inline_and_the_policy_forbids_it(pages):
    def rule(page: Any, html: str) -> None:
        assert not re.search(r"<script(?![^>]*\bsrc=)", html)
        assert not re.search(r"<style\b|\sstyle=|\son\w+=", html)
        policy = page["Content-Security-Policy"]
        assert "script-src 'self'" in policy and "style-src 'self'" in policy
        assert "unsafe" not in policy

    check_pages(pages, rule)


def test_everything_comes_from_the_portal_itself(pages):
    def rule(_page: Any, html: str) -> None:
        assert not re.search(r'(?:src|href)="(?:https?:)?//', html)

    check_pages(pages, rule)


def test_pages_have_a_title_a_language_one_heading_and_a_way_past_the_top_bar(pages):
    def rule(_page: Any, html: str) -> None:
        assert re.search(r"<title>\s*\S[^<]* · Monarch portal\s*</title>", html)
        assert re.search(r'<html\s+lang="en"', html)
        assert html.count("<h1") == 1
        assert html.index('href="#main"') < html.index("<header")
        assert '<main id="main"' in html

    check_pages(pages, rule)


def test_every_form_that_changes_something_carries_a_csrf_token(pages):
    def rule(_page: Any, html: str) -> None:
        for form in re.findall(r'<form[^>]*method="post".*?</form>', html, re.DOTALL):
            assert "csrfmiddlewaretoken" in form

    check_pages(pages, rule)


def test_no_id_stands_twice(pages):
    def rule(_page: Any, html: str) -> None:
        names = re.findall(r'\sid="([^"]+)"', html)
        assert len(names) == len(set(names))

    check_pages(pages, rule)


def test_every_field_and_button_has_a_name(pages):
    def rule(_page: Any, html: str) -> None:
        labelled = set(re.findall(r'<label for="([^"]+)"', html))
        for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
            name = re.search(r'\sid="([^"]+)"', tag)
            known = 'type="hidden"' in tag or "aria-label" in tag or (name and name[1] in labelled)
            assert known, tag
        for button in re.findall(r"<button[^>]*>.*?</button>", html, re.DOTALL):
            words = re.sub(r"<[^>]+>", "", button).strip()
            assert words or "aria-label=" in button, button

    check_pages(pages, rule)


POSTS = (
    "/sign-in",
    "/sign-out",
    "/settings/tokens",
    "/settings/theme",
    "/rl/jobs/new",
    "/rl/members",
)


def test_a_post_without_a_csrf_token_is_refused(admin):
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.force_login(admin.user)

    def check(path: str) -> None:
        assert strict.post(path, {"source": "run: echo"}).status_code == 403

    check_each(POSTS, check)


def test_every_page_but_signing_in_takes_a_sign_in(project):
    visitor, job = Client(raise_request_exception=False), make_job(project)

    def check(path: str) -> None:
        response = visitor.get(path.format(job=job.pk, other=job.pk))
        assert response.status_code == 302
        assert response["Location"].startswith("/sign-in?next=/")

    check_each(["/", *OWN_PAGES, *PROJECT_PAGES, "/rl/jobs/live"], check)
