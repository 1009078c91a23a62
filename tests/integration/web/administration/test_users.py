"""The pages about users of the installation, and the sessions of the user who looks."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from jobs.models import User, UserSession
from tests.factories import make_user
from tests.integration.web.conftest import Browser, browser_of, text_of

LINK = re.compile(r"http://testserver(/sign-in/once/[\w-]+)")


@pytest.fixture
def root(db: None) -> Browser:
    return browser_of(make_user("root", is_superuser=True))


def test_the_link_of_an_invitation_is_shown_once_and_signs_in(root, project):
    form = {"username": "nora", "project": "rl", "role": "member", "hours": "48"}
    answer = root.post("/settings/users", form)
    link = LINK.search(answer.content.decode())
    assert link is not None
    assert "no-store" in answer["Cache-Control"]
    assert not LINK.search(root.get("/settings/users").content.decode())
    visitor = Client()
    visitor.post(link[1])
    assert visitor.get("/rl/jobs").status_code == 200
    assert "There is a user nora already" in text_of(root.post("/settings/users", form))


def test_an_account_is_disabled_and_enabled_on_its_page(root):
    make_user("nora")
    address = "/settings/users/nora"
    root.post(f"{address}/change", {"change": "disable"})
    assert not User.objects.get(username="nora").is_active
    assert "New sign-in link" not in root.text(address)
    root.post(f"{address}/change", {"change": "enable"})
    assert LINK.search(root.post(address, {"hours": "12"}).content.decode())
    refused = root.post("/settings/users/root/change", {"change": "disable"}, follow=True)
    assert "last administrator" in text_of(refused)


def test_a_browser_is_refused_without_a_word_of_tokens(member):
    for address in ("/settings/users", "/settings/queues"):
        refused = member.get(address)
        assert refused.status_code == 403
        assert "administrators of this installation." in text_of(refused)


def test_users_end_their_own_sessions(member):
    Client().force_login(member.user)
    assert member.text("/settings/sessions").count("End the session") == 0
    assert "this browser" in member.text("/settings/sessions")
    other = UserSession.objects.filter(user=member.user).exclude(pk=member.session.session_key)
    member.post("/settings/sessions/end", {"session": other.get().public_id})
    assert not other.exists()
    member.post("/settings/sessions/end")
    assert member.get("/settings/sessions").status_code == 302


def test_sessions_name_the_browser_and_have_its_user_agent_as_a_tooltip(member):
    agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36"
    UserSession.objects.update(browser=agent)
    html = member.get("/settings/sessions").content.decode()
    assert re.search(rf'title="{re.escape(agent)}">\s*Chrome 120 on Linux\s*<', html)


def test_the_menu_names_administration_to_administrators_alone(root, admin):
    assert "Administration" in root.text("/settings/tokens")
    assert "Administration" not in admin.text("/settings/tokens")
