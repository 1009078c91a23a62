"""The first user, the first project, and the link that lets them in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.accounts.bootstrap import bootstrap
from jobs.actions.accounts.sign_in_links import create_sign_in_link, redeem
from jobs.errors import NotFoundError
from jobs.models import Membership, Project, SignInLink, User
from jobs.statuses import Role
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_the_first_start_makes_an_admin_without_a_password_and_a_project():
    first = bootstrap()
    assert first.created
    assert first.user.is_superuser
    assert not first.user.has_usable_password()
    membership = Membership.objects.get(project=first.project, user=first.user)
    assert membership.role == Role.ADMIN
    assert first.project.laptops_may_attach


def test_a_second_start_makes_nothing():
    bootstrap()
    assert not bootstrap().created
    assert (User.objects.count(), Project.objects.count()) == (1, 1)


def test_a_sign_in_link_works_once():
    user = make_user()
    secret = create_sign_in_link(user)
    assert redeem(secret) == user
    with pytest.raises(NotFoundError):
        redeem(secret)


def test_a_sign_in_link_expires(time_machine):
    secret = create_sign_in_link(make_user())
    time_machine.move_to(timezone.now() + timedelta(hours=13))
    with pytest.raises(NotFoundError):
        redeem(secret)


def test_the_secret_of_a_link_is_not_stored():
    secret = create_sign_in_link(make_user())
    assert secret not in str(SignInLink.objects.values().get())


def test_two_links_of_one_user_are_distinguished():
    user = make_user()
    first, second = create_sign_in_link(user), create_sign_in_link(user)
    assert redeem(first) == redeem(second) == user
