"""Signing in by password and by link, and out."""

from __future__ import annotations

import pytest
from django.test import Client

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from monarch_portal import settings as settings_module
from tests.factories import make_user
from tests.integration.web.conftest import text_of

PASSWORD = "correct horse battery"


@pytest.fixture
def visitor(db) -> Client:
    return Client()


def test_a_page_sends_a_visitor_to_the_sign_in_page_and_back(visitor, project):
    make_user("ada", password=PASSWORD, is_superuser=True)
    response = visitor.get("/rl/jobs?status=FAILED")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in?next=/rl/jobs%3Fstatus%3DFAILED"
    form = {"username": "ada", "password": PASSWORD, "next": "/rl/jobs?status=FAILED"}
    response = visitor.post("/sign-in", form)
    assert (response.status_code, response["Location"]) == (302, "/rl/jobs?status=FAILED")


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "\\\\evil"]
)
def test_next_never_leads_out_of_the_portal(visitor, elsewhere):
    user = make_user("ada", password=PASSWORD)
    form = {"username": "ada", "password": PASSWORD, "next": elsewhere}
    assert visitor.post("/sign-in", form)["Location"] == "/"
    visitor.logout()
    link = f"/sign-in/once/{create_sign_in_link(user)}"
    assert visitor.post(link, {"next": elsewhere})["Location"] == "/"


@pytest.mark.parametrize("nowhere", ["foo", "jobs", "?page=2", ".", "web:tokens"])
def test_next_that_is_no_path_leads_to_the_start(visitor, nowhere):
    assert visitor.post("/settings/theme", {"next": nowhere})["Location"] == "/"


def test_a_link_takes_the_portals_own_form(visitor):
    link = f"/sign-in/once/{create_sign_in_link(make_user('ada'))}"
    assert Client(enforce_csrf_checks=True).post(link).status_code == 403
    assert visitor.post(link).status_code == 302


def test_a_session_from_before_the_sign_in_is_not_the_one_after(visitor):
    visitor.session["seen"] = True
    before = visitor.session.session_key
    visitor.post(f"/sign-in/once/{create_sign_in_link(make_user('ada'))}")
    assert visitor.session.session_key != before


def test_a_wrong_password_is_reported_without_saying_which_part_is_wrong(visitor):
    make_user("ada", password=PASSWORD)
    pages = [
        text_of(visitor.post("/sign-in", {"username": name, "password": "wrong"}))
        for name in ("ada", "nobody")
    ]
    assert all("The user name or the password is wrong." in page for page in pages)


def test_opening_a_link_does_not_use_it_up(visitor):
    link = f"/sign-in/once/{create_sign_in_link(make_user('ada'))}"
    for _ in range(3):
        assert visitor.get(link).status_code == 200
    assert "_auth_user_id" not in visitor.session
    visitor.post(link)
    assert "_auth_user_id" in visitor.session


def test_a_link_signs_in_once_and_offers_to_set_a_password(visitor):
    link = f"/sign-in/once/{create_sign_in_link(make_user('ada'))}"
    response = visitor.post(link)
    assert response["Location"] == "/settings/password?first=1&next=%2F"
    assert "Choose a password" in text_of(visitor.get(response["Location"]))
    again = Client().post(link)
    assert again.status_code == 410
    assert "has been used or has expired" in text_of(again)


def test_a_link_of_a_user_with_a_password_goes_straight_on(visitor):
    user = make_user("ada", password=PASSWORD)
    link = f"/sign-in/once/{create_sign_in_link(user)}"
    assert visitor.post(link, {"next": "/rl/jobs"})["Location"] == "/rl/jobs"


def test_the_command_that_prints_a_link_is_the_one_that_works_on_this_portal(visitor, settings):
    settings.MPORTAL_MANAGE = "docker compose exec web python manage.py"
    for path in ("/sign-in", "/sign-in/once/unknown"):
        page = text_of(visitor.post(path, follow=True))
        assert "docker compose exec web python manage.py sign_in_link" in page


def test_a_checkout_names_its_own_python():
    assert settings_module.MPORTAL_MANAGE == ".venv/bin/python manage.py"


def test_signing_out_takes_a_post(member):
    assert member.get("/sign-out").status_code == 405
    assert member.post("/sign-out")["Location"] == "/sign-in"
    assert "_auth_user_id" not in member.session


def test_a_signed_in_user_does_not_see_the_sign_in_page(member):
    assert member.get("/sign-in")["Location"] == "/"
