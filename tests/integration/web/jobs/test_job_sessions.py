"""Attached programs on the job page: who, since when, and a button that ends a session."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.actions.attempts.open_gateway import open_session
from jobs.models import GatewaySession, Job, Worker
from jobs.permissions import Actor
from jobs.statuses import GatewayState, JobKind, JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE


@pytest.fixture
def session(project, member) -> GatewaySession:
    project.laptops_may_attach = True
    project.save()
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        kind=JobKind.MONARCH,
        submitted_by=member.user,
        spec_source=SOURCE,
    )
    make_attempt(job)
    opened, _ = open_session(Actor(member.user, source="203.0.113.7"), job)
    GatewaySession.objects.update(state=GatewayState.AWAY, bytes_up=2_097_152)
    return opened


@pytest.fixture
def browser_code(monkeypatch) -> None:
    """Let the portal find the code of terminals, which is installed where npm is."""
    monkeypatch.setattr("django.contrib.staticfiles.finders.find", lambda path: path)


def address_of(session: GatewaySession, more: str = "nodes") -> str:
    return f"/rl/jobs/{session.attempt.job_id}/{more}"


def test_a_viewer_sees_who_is_attached_and_has_no_button(viewer, session) -> None:
    text = viewer.text(address_of(session))
    for part in (session.user.get_username(), "Away", "203.0.113.7", "2.0 MB"):
        assert part in text
    assert "End session" not in viewer.get(address_of(session)).content.decode()


def test_the_button_ends_the_session_which_then_leaves_the_page(member, session) -> None:
    assert f"End session {session.pk}" in member.get(address_of(session)).content.decode()
    answer = member.post(address_of(session, f"sessions/{session.pk}/end"), follow=True)
    assert f"Session {session.pk} was ended." in answer.content.decode()
    assert "job-sessions" not in answer.content.decode()
    assert Job.objects.get().events.filter(verb="detach").exists()


def test_a_page_without_sessions_has_no_table(member, session) -> None:
    GatewaySession.objects.all().delete()
    assert "job-sessions" not in member.get(address_of(session)).content.decode()


def test_a_portal_without_the_code_of_terminals_says_what_to_install(
    member, session, monkeypatch
) -> None:
    page = f"/rl/jobs/{session.attempt.job_id}/terminal"
    monkeypatch.setattr("django.contrib.staticfiles.finders.find", lambda _: None)
    assert "set up without xterm.js" in member.text(page)
    monkeypatch.setattr("django.contrib.staticfiles.finders.find", lambda path: path)
    assert "Connecting" in member.text(page)


def test_a_terminal_that_cannot_open_is_a_sentence_and_for_admins_the_way_to_allow_it(
    member, admin, session, project, browser_code
) -> None:
    page = f"/rl/jobs/{session.attempt.job_id}/terminal"
    assert 'id="terminal"' in member.get(page).content.decode()
    project.laptops_may_attach = False
    project.save()
    for browser, has_link in ((member, False), (admin, True)):
        html = browser.get(page).content.decode()
        assert "Project rl does not allow shells" in html
        assert 'id="terminal"' not in html
        assert ("/rl/settings/policies" in html) is has_link
    session.attempt.job.attempts.update(ended_at=timezone.now())
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=timezone.now())
    assert "attach to running jobs only" in member.text(page)


def test_pages_link_only_to_a_terminal_that_would_open(
    member, viewer, session, project, browser_code, monkeypatch
) -> None:
    def links(browser) -> list[bool]:
        texts = [
            browser.get(address_of(session, each)).content.decode() for each in ("log", "nodes")
        ]
        return [f"/rl/jobs/{session.attempt.job_id}/terminal" in text for text in texts]

    Worker.objects.create(attempt=session.attempt, rank=0, status=WorkerStatus.RUNNING)
    assert links(member) == [True, True]
    assert links(viewer) == [False, False]
    monkeypatch.setattr("django.contrib.staticfiles.finders.find", lambda _: None)
    assert links(member) == [False, False]
    monkeypatch.setattr("django.contrib.staticfiles.finders.find", lambda path: path)
    project.laptops_may_attach = False
    project.save()
    assert links(member) == [False, False]
