"""A form sent from an outdated page: the message leads back to a page that opens."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job, make_member
from tests.integration.web.conftest import text_of

pytestmark = pytest.mark.django_db
HERE = "http://testserver"


@pytest.fixture
def strict(redis_client, project) -> Client:
    """Return the client of a signed-in user, whose browser sends outdated CSRF tokens."""
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(make_member(project))
    return browser


def refused(browser: Client, path: str, referer: str | None = None) -> Any:
    answer = browser.post(path, headers={"Referer": referer} if referer else {})
    assert answer.status_code == 403
    return answer


def way_on(answer: Any) -> str:
    (href,) = re.findall(r'<a class="button" href="([^"]*)"', answer.content.decode())
    return unescape(href)


@pytest.mark.parametrize("action", ["cancel", "hold", "release", "prioritize", "rerun", "delete"])
@pytest.mark.parametrize("page", [None, "/rl/jobs/{}?x=1&y=2", "/rl/jobs"])
def test_an_action_that_was_refused_leads_to_a_page_that_opens(strict, project, action, page):
    job = make_job(project)
    page = page and page.format(job.pk)
    answer = refused(strict, f"/rl/jobs/{job.pk}/{action}", page and HERE + page)
    assert way_on(answer) == (page or "/")
    assert strict.get(way_on(answer), follow=True).status_code == 200
    assert "A job that you typed" not in text_of(answer)


@pytest.mark.parametrize("referer", [None, HERE + "/rl/jobs/new"])
def test_a_job_that_was_typed_is_found_again_where_the_refused_form_leads(strict, referer):
    answer = refused(strict, "/rl/jobs/new", referer)
    assert way_on(answer) == "/rl/jobs/new"
    assert "offers to restore the job that you typed" in text_of(answer)


@pytest.mark.parametrize(
    "referer",
    [
        "https://evil.example/rl/jobs",
        "//evil.example/rl/jobs",
        HERE + "//evil.example/",
        HERE + "/\\evil.example/",
        "http://testserver@evil.example/",
        "javascript:alert(1)",
        "http://[",
        "rl/jobs",
    ],
)
def test_a_refused_form_leads_nowhere_outside_the_portal(strict, referer):
    assert way_on(refused(strict, "/settings/theme", referer)) == "/"
