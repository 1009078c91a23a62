"""What holds for every page: a strict policy, nothing inline, CSRF, names for everything."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from jobs.actions.sign_in_links import create_sign_in_link
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job, make_schedule
from tests.sample_frames import tell_of_hosts

OWN_PAGES = ["/settings/tokens", "/settings/password", "/settings/clusters"]
PROJECT_PAGES = [
    "/rl/jobs",
    "/rl/jobs/new",
    "/rl/members",
    "/rl/clusters",
    "/rl/infra",
    "/rl/queue",
    "/rl/secrets",
    "/rl/usage",
    "/rl/schedules",
    "/rl/schedules/nightly",
    "/rl/new-schedule",
    "/rl/jobs/{job}",
    "/rl/jobs/{job}/spec",
    "/rl/jobs/{job}/hosts",
    "/rl/jobs/{job}/mesh",
]
PAGES = [*OWN_PAGES, *PROJECT_PAGES, "/sign-in", "/sign-in/once/{link}", "/rl/jobs/999999"]


@pytest.fixture(params=PAGES)
def page(request, admin, project):
    """Each page in turn, as its reader gets it."""
    job = make_job(project, status=JobStatus.RUNNING, spec_source="run: '<b>'")
    attempt = make_attempt(job)
    tell_of_hosts(attempt, 2, gpus=2)
    make_schedule(project, "nightly", spec_source="run: '<b>'").runs.create(
        slot=job.created_at, outcome="submitted", job=job
    )
    path = request.param.format(job=job.pk, link=create_sign_in_link(admin.user))
    client = Client() if path.startswith("/sign-in") else admin
    return client.get(path)


def test_nothing_is_inline_and_the_policy_forbids_it(page):
    html = page.content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style\b|\sstyle=|\son\w+=", html)
    policy = page["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "style-src 'self'" in policy
    assert "unsafe" not in policy


def test_everything_comes_from_the_portal_itself(page):
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page.content.decode())


def test_it_has_a_title_a_language_one_heading_and_a_way_past_the_top_bar(page):
    html = page.content.decode()
    assert re.search(r"<title>\s*\S[^<]* · Monarch portal\s*</title>", html)
    assert re.search(r'<html\s+lang="en"', html)
    assert html.count("<h1") == 1
    assert html.index('href="#main"') < html.index("<header")
    assert '<main id="main"' in html


def test_every_form_that_changes_something_carries_a_csrf_token(page):
    for form in re.findall(r'<form[^>]*method="post".*?</form>', page.content.decode(), re.DOTALL):
        assert "csrfmiddlewaretoken" in form


def test_no_id_stands_twice(page):
    names = re.findall(r'\sid="([^"]+)"', page.content.decode())
    assert len(names) == len(set(names))


def test_every_field_and_button_has_a_name(page):
    html = page.content.decode()
    labelled = set(re.findall(r'<label for="([^"]+)"', html))
    for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
        name = re.search(r'\sid="([^"]+)"', tag)
        known = 'type="hidden"' in tag or "aria-label" in tag or (name and name[1] in labelled)
        assert known, tag
    for button in re.findall(r"<button[^>]*>.*?</button>", html, re.DOTALL):
        words = re.sub(r"<[^>]+>", "", button).strip()
        assert words or "aria-label=" in button, button


@pytest.mark.parametrize(
    "path",
    ["/sign-in", "/sign-out", "/settings/tokens", "/settings/theme", "/rl/jobs/new", "/rl/members"],
)
def test_a_post_without_a_csrf_token_is_refused(admin, path):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin.user)
    assert strict.post(path, {"source": "run: echo"}).status_code == 403


@pytest.mark.parametrize("path", ["/", *OWN_PAGES, *PROJECT_PAGES, "/rl/jobs/live"])
def test_every_page_but_signing_in_takes_a_sign_in(project, path):
    response = Client().get(path.format(job=make_job(project).pk))
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in?next=/")
