"""Users: invited by a link, disabled, made administrators, signed out."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from jobs.actions.accounts.change_user import change_user, end_sessions
from jobs.actions.accounts.set_password import set_password
from jobs.actions.accounts.sign_in_links import redeem, replace_sign_in_link
from jobs.actions.projects.invite_user import invite_user
from jobs.errors import ConflictError, NotFoundError, PermissionDeniedError
from jobs.live.channel import rights_topic
from jobs.models import AuditEntry, Membership, SignInLink, User, UserSession
from jobs.permissions import Actor
from jobs.statuses import Role
from tests.factories import make_project, make_token, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def root() -> Actor:
    return Actor(make_user("root", is_superuser=True), source="203.0.113.7")


def is_signed_in(browser: Client) -> bool:
    return browser.get("/settings/tokens").status_code == 200


def test_an_invited_user_signs_in_once_and_is_a_member(root: Actor) -> None:
    project = make_project("rl")
    link = invite_user(root, "nora", hours=2, project="rl", role=Role.MAINTAINER)
    assert timedelta(hours=1.9) < link.expires_at - timezone.now() <= timedelta(hours=2)
    assert redeem(link.secret) == link.user
    with pytest.raises(NotFoundError, match="used or has expired"):
        redeem(link.secret)
    assert Membership.objects.get(project=project, user=link.user).role == Role.MAINTAINER


def test_a_token_that_expires_grants_no_access_that_outlives_it(root: Actor) -> None:
    nora = make_user("nora")
    week = make_token(root.user, expires_at=timezone.now() + timedelta(days=7))[0]
    by_token = Actor(root.user, week)
    for grant in (
        lambda actor: replace_sign_in_link(actor, "root", hours=2),
        lambda actor: invite_user(actor, "mole", hours=2),
        lambda actor: change_user(actor, "nora", is_admin=True),
    ):
        with pytest.raises(PermissionDeniedError, match="longer access"):
            grant(by_token)
        grant(Actor(root.user, make_token(root.user)[0]))
    change_user(by_token, "nora", is_admin=False, is_active=False)
    nora.refresh_from_db()
    assert not nora.is_superuser


def test_an_invited_name_is_stored_as_the_sign_in_form_reads_it(root: Actor) -> None:
    make_project("rl")
    link = invite_user(root, "\ufb01ona", hours=2, project="rl")
    assert link.user.username == "fiona"
    assert Membership.objects.get().user == link.user


def test_a_refused_invitation_creates_no_user(root: Actor) -> None:
    with pytest.raises(NotFoundError):
        invite_user(root, "nora", hours=2, project="gone")
    assert not User.objects.filter(username="nora").exists()


def test_a_new_link_replaces_the_earlier_ones_and_none_opens_a_disabled_account(
    root: Actor,
) -> None:
    first = invite_user(root, "nora", hours=2)
    second = replace_sign_in_link(root, "nora", hours=2)
    with pytest.raises(NotFoundError):
        redeem(first.secret)
    change_user(root, "nora", is_active=False)
    with pytest.raises(NotFoundError):
        redeem(second.secret)
    with pytest.raises(ConflictError, match="disabled"):
        replace_sign_in_link(root, "nora", hours=2)
    assert SignInLink.objects.filter(used_at=None, expires_at__gt=timezone.now()).count() == 0


def test_disabling_ends_sessions_and_tokens_and_enabling_revives_no_session(root: Actor) -> None:
    nora = make_user("nora", password=PASSWORD)
    browser, token = Client(), make_token(nora)[1]
    browser.login(username="nora", password=PASSWORD)
    assert is_signed_in(browser)
    change_user(root, "nora", is_active=False)
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().get("/api/v1/me", headers=headers).status_code == 401
    change_user(root, "nora", is_active=True)
    assert not is_signed_in(browser)
    assert Client().get("/api/v1/me", headers=headers).status_code == 200


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_admin": False}])
def test_the_last_administrator_stays(root: Actor, change: dict[str, bool]) -> None:
    disabled = make_user("old", is_superuser=True, is_active=False)
    with pytest.raises(ConflictError, match="last administrator"):
        change_user(root, "root", **change)
    assert User.objects.get(pk=root.user.pk).is_active
    change_user(root, disabled.username, is_active=True)
    change_user(root, "root", **change)


def test_a_session_shows_where_it_began_and_ends_alone_or_with_all(root: Actor) -> None:
    make_user("nora", password=PASSWORD)
    browsers = [Client(headers={"User-Agent": f"Browser {number}"}) for number in range(3)]
    for each in browsers:
        each.post("/sign-in", {"username": "nora", "password": PASSWORD})
    rows = {row.browser: row for row in UserSession.objects.filter(user__username="nora")}
    assert set(rows) == {"Browser 0", "Browser 1", "Browser 2"}
    assert rows["Browser 1"].address == "127.0.0.1"
    assert rows["Browser 1"].signed_in_at is not None
    end_sessions(root, "nora", rows["Browser 1"].public_id)
    assert [is_signed_in(each) for each in browsers] == [True, False, True]
    assert end_sessions(root, "nora") == 2
    assert not any(is_signed_in(each) for each in browsers)
    with pytest.raises(NotFoundError):
        end_sessions(root, "nora", rows["Browser 1"].public_id)


def test_users_end_their_own_sessions_and_no_others() -> None:
    nora, other = make_user("nora"), make_user("other")
    Client().force_login(other)
    browser = Client()
    browser.force_login(nora)
    with pytest.raises(PermissionDeniedError):
        end_sessions(Actor(nora), "other")
    assert end_sessions(Actor(nora), "me") == 1
    assert UserSession.objects.get().user == other
    bound = make_token(nora, project=make_project())[0]
    reads_only = make_token(nora, read_only=True)[0]
    for token in (bound, reads_only):
        with pytest.raises(PermissionDeniedError):
            end_sessions(Actor(nora, token), "me")


def test_a_password_of_the_command_is_in_the_audit_log(monkeypatch: Any) -> None:
    nora = make_user("nora")
    typed = iter(["short", "short", PASSWORD, PASSWORD])
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    errors = StringIO()
    call_command("changepassword", "nora", stdout=StringIO(), stderr=errors)
    assert "too short" in errors.getvalue()
    nora.refresh_from_db()
    assert nora.check_password(PASSWORD)
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.name, entry.source) == ("set_password", "nora", "command line")
    with pytest.raises(CommandError, match="no user"):
        call_command("changepassword", "gone")


@pytest.mark.django_db(transaction=True)
def test_a_new_password_has_the_streams_of_other_sessions_checked_at_once(redis_client):
    user = make_user("ada")
    with redis_client.pubsub() as hints:
        hints.subscribe(rights_topic(user.pk))
        set_password(Actor(user), PASSWORD)
        kinds = [(hints.get_message(timeout=10) or {}).get("type") for _ in range(2)]
    assert kinds == ["subscribe", "message"]
