"""Users who lose the right to see a job lose its stream as well, however long it has been open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone

from jobs.api.logs import log_stream
from jobs.errors import PermissionDeniedError, PortalError
from jobs.live import access
from jobs.live.access import Access
from jobs.models import ApiToken, Membership, User
from jobs.web.base import live
from jobs.web.base.live import ChangesWatch
from tests.factories import make_job, make_member, make_project, make_token

pytestmark = pytest.mark.django_db


def sign_out(browser: Client) -> None:
    browser.logout()


def bar(_: Client) -> None:
    User.objects.update(is_active=False)


def demote(_: Client) -> None:
    User.objects.update(is_superuser=False)
    Membership.objects.all().delete()


def revoke(_: Client) -> None:
    ApiToken.objects.update(revoked_at=timezone.now())


def request_of(browser: Client, secret: str = "") -> HttpRequest:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    request = RequestFactory().get("/", headers=headers)
    request.session = browser.session
    request.user = get_user(request)
    return request


@pytest.mark.parametrize(
    ("loss", "by_token"),
    [(sign_out, False), (bar, False), (demote, False), (bar, True), (revoke, True)],
)
def test_a_reader_who_may_no_longer_see_the_job_is_found_out(
    loss: Callable[[Client], None], by_token: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, browser = make_project(), Client()
    user = make_member(project, is_superuser=True)
    browser.force_login(user)
    secret = make_token(user)[1] if by_token else ""
    job = make_job(project)
    watch, _ = log_stream._open(request_of(browser, secret), project.slug, job.pk)
    monkeypatch.setattr(access, "CHECKED_EVERY_S", -1.0)
    watch.access.confirm()
    loss(browser)
    with pytest.raises(PortalError):
        watch.access.confirm()


@pytest.mark.parametrize("loss", [sign_out, bar, demote])
def test_a_reader_of_a_table_who_may_no_longer_see_it_is_found_out(
    loss: Callable[[Client], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, browser = make_project(), Client()
    browser.force_login(make_member(project, is_superuser=True))
    request = request_of(browser)
    watch = ChangesWatch(Access(lambda: live._access(request, project.slug), "mine"), "topic")
    monkeypatch.setattr(access, "CHECKED_EVERY_S", -1.0)
    watch.access.confirm()
    loss(browser)
    with pytest.raises(PortalError):
        watch.access.confirm()


def test_many_streams_of_one_reader_ask_for_the_same_right_once() -> None:
    requested: list[int] = []
    rights = [Access(partial(requested.append, number), "one reader") for number in range(3)]
    other = Access(partial(requested.append, 9), "another")
    for each in (*rights, other):
        each._right.checked_at -= 60
    for each in (*rights, other):
        each.confirm()
    assert requested == [0, 9]


def test_a_right_that_was_lost_is_lost_for_every_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> None:
        raise PermissionDeniedError("Sign in again.")

    monkeypatch.setattr(access, "CHECKED_EVERY_S", -1.0)
    for each in [Access(lost, "one reader") for _ in range(2)]:
        with pytest.raises(PermissionDeniedError):
            each.confirm()


def test_a_hint_during_a_check_makes_the_next_check_due() -> None:
    checks: list[bool] = []

    def check() -> None:
        checks.append(True)
        mine.expire()

    mine = Access(check, "one reader")
    mine.expire()
    mine.confirm()
    assert mine.is_due
    mine.confirm()
    assert len(checks) == 2


def test_a_permission_is_as_old_as_the_begin_of_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(access.time, "monotonic", lambda: now_s)

    def check() -> None:
        nonlocal now_s
        now_s += access.CHECKED_EVERY_S + 1

    mine = Access(check, "one reader")
    mine.expire()
    mine.confirm()
    assert mine.is_due
