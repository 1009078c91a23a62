"""Tokens, password and theme."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest
from django.test import Client

from jobs.models import ApiToken
from tests.factories import make_token, make_user
from tests.integration.web.conftest import Browser, browser_of, text_of

TOKEN = re.compile(r"mpt_[\w-]{20,}")
GOOD = "correct horse battery"


def test_a_new_token_is_shown_once_and_works(member):
    form = {"name": "laptop", "project": "rl", "days": "30"}
    response = member.post("/settings/tokens", form)
    secret = TOKEN.search(response.content.decode())
    assert secret is not None
    assert "no-store" in response["Cache-Control"]
    assert not TOKEN.search(member.get("/settings/tokens").content.decode())
    token = ApiToken.objects.get(name="laptop")
    assert (token.project.slug, token.read_only, token.expires_at is None) == ("rl", False, False)
    headers = {"Authorization": f"Bearer {secret[0]}"}
    assert Client().get("/api/v1/me", headers=headers).status_code == 200


def test_a_token_reaches_only_projects_of_its_maker(member, stranger):
    response = member.post("/settings/tokens", {"name": "x", "project": "other", "days": ""})
    assert "Select a valid choice" in text_of(response)
    assert not ApiToken.objects.exists()


def test_a_token_can_last_and_be_read_only(member):
    member.post("/settings/tokens", {"name": "x", "days": "", "read_only": "on"})
    token = ApiToken.objects.get()
    assert (token.project, token.expires_at, token.read_only) == (None, None, True)


def test_revoking_ends_a_token_but_never_another_users(member, stranger):
    mine, _ = make_token(member.user, name="mine")
    theirs, _ = make_token(stranger.user, name="theirs")
    member.post(f"/settings/tokens/{mine.pk}/revoke")
    assert member.post(f"/settings/tokens/{theirs.pk}/revoke").status_code == 404
    assert ApiToken.objects.get(name="mine").revoked_at is not None
    assert ApiToken.objects.get(name="theirs").revoked_at is None
    assert "theirs" not in member.text("/settings/tokens")


@pytest.fixture
def with_password(db) -> Browser:
    return browser_of(make_user("ada", password=GOOD))


def test_the_first_password_needs_no_old_one_and_keeps_the_session(loner):
    loner.user.set_unusable_password()
    loner.user.save()
    loner.force_login(loner.user)
    form = {"new_password1": GOOD, "new_password2": GOOD, "next": "/rl/jobs"}
    assert loner.post("/settings/password", form)["Location"] == "/rl/jobs"
    loner.user.refresh_from_db()
    assert loner.user.check_password(GOOD)
    assert loner.get("/settings/password").status_code == 200


def test_changing_a_password_takes_the_old_one(with_password):
    form = {"new_password1": GOOD + "!", "new_password2": GOOD + "!", "old_password": "wrong"}
    page = text_of(with_password.post("/settings/password", form)).replace("&#x27;", "'")
    assert "This is not your current password." in page
    with_password.post("/settings/password", {**form, "old_password": GOOD})
    with_password.user.refresh_from_db()
    assert with_password.user.check_password(GOOD + "!")


def test_weak_and_unequal_passwords_are_refused(loner):
    for first, second in (("12345678", "12345678"), (GOOD, GOOD + "x")):
        loner.post("/settings/password", {"new_password1": first, "new_password2": second})
        loner.user.refresh_from_db()
        assert not loner.user.check_password(first)


def root_of(response):
    """Return the opening tag of the document."""
    return re.search(r"<html[^>]*>", response.content.decode())[0]


def test_the_theme_is_remembered_and_written_into_every_page(member):
    response = member.post("/settings/theme", {"theme": "dark", "next": "/rl/jobs"})
    assert response["Location"] == "/rl/jobs"
    assert 'data-theme="dark"' in root_of(member.get("/rl/jobs"))
    member.post("/settings/theme", {"theme": "system"})
    assert "data-theme" not in root_of(member.get("/rl/jobs"))


def test_a_theme_of_anothers_making_never_reaches_the_page(member):
    member.cookies["theme"] = '"><script>'
    assert '"><script>' not in member.get("/rl/jobs").content.decode()
    assert "theme" not in Client().post("/settings/theme", {"theme": "pink"}).cookies


def test_times_are_shown_in_the_zone_and_hours_of_the_account(member):
    make_token(member.user, expires_at=datetime(2030, 1, 1, 20, tzinfo=timezone.utc))
    assert "Jan 1, 2030" in member.text("/settings/tokens")
    form = {"time_zone": "Asia/Tokyo", "hour_format": "12"}
    assert member.post("/settings/time", form).status_code == 302
    page = member.get("/settings/tokens").content.decode()
    assert "Jan 2, 2030" in page
    assert 'title="Jan 2, 2030, 5:00:00 AM Asia/Tokyo · 2030-01-01 20:00:00 UTC"' in page
    assert 'data-zone="Asia/Tokyo" data-hours="12"' in page


def test_an_unknown_time_zone_is_refused_at_its_field(member):
    response = member.post("/settings/time", {"time_zone": "Mars/Base", "hour_format": ""})
    assert response.status_code == 422
    assert "There is no time zone" in text_of(response)


def test_settings_leads_to_the_pages_of_the_account_and_of_the_project(member):
    member.get("/rl")
    html = member.get("/settings").content.decode()
    main = html[html.index("<main") : html.index("</main>")]
    for address in ("/settings/tokens", "/settings/time", "/rl/settings", "/settings/projects"):
        assert f'href="{address}"' in main
    assert "/settings/users" not in main
