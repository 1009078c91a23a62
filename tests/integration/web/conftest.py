"""Browsers of people with each role in project `rl`, and checks of every page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from jobs.models import Project, User
from jobs.statuses import Role
from tests.factories import make_member, make_project, make_user

SOURCE = "name: hello\nrun: echo hello\n"


class Browser(Client):
    """A signed-in browser; `text` is the page's text without markup."""

    user: User

    def text(self, path: str, **query: Any) -> str:
        response = self.get(path, query)
        assert response.status_code == 200, response
        return text_of(response)


def browser_of(user: User) -> Browser:
    browser = Browser()
    browser.user = user
    browser.force_login(user)
    return browser


def text_of(response: Any) -> str:
    """Return the text of a page, with runs of blanks made one."""
    html = re.sub(r"<(script|style)\b.*?</\1>", "", response.content.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.fixture
def project(db) -> Project:
    return make_project("rl")


@pytest.fixture
def viewer(project) -> Browser:
    return browser_of(make_member(project, Role.VIEWER, username="vera"))


@pytest.fixture
def member(project) -> Browser:
    return browser_of(make_member(project, Role.MEMBER, username="mia"))


@pytest.fixture
def maintainer(project) -> Browser:
    return browser_of(make_member(project, Role.MAINTAINER, username="max"))


@pytest.fixture
def admin(project) -> Browser:
    return browser_of(make_member(project, Role.ADMIN, username="ada"))


@pytest.fixture
def stranger(db) -> Browser:
    return browser_of(make_member(make_project("other"), Role.ADMIN, username="sam"))


@pytest.fixture
def loner(db) -> Browser:
    return browser_of(make_user("lou"))


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> None:
    """Start nothing in the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
