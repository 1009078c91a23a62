"""API tokens: shown once, stored as a digest, never with more rights than their owner."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.accounts.tokens import create_token, revoke_token
from jobs.errors import NotFoundError, PermissionDeniedError
from jobs.models import ApiToken
from jobs.permissions import Actor
from jobs.statuses import Role
from tests.factories import make_actor, make_project, make_token

pytestmark = pytest.mark.django_db


def test_only_a_digest_of_the_secret_is_stored():
    token, secret = create_token(make_actor(), "laptop")
    stored = ApiToken.objects.filter(pk=token.pk).values().get()
    assert secret.startswith("mpt_")
    assert not any(secret in str(value) for value in stored.values())


def test_a_revoked_token_is_no_longer_usable_and_no_other_user_can_revoke_it():
    actor = make_actor()
    token, _ = create_token(actor, "laptop")
    with pytest.raises(NotFoundError):
        revoke_token(make_actor(), token.pk)
    revoke_token(actor, token.pk)
    assert not ApiToken.objects.usable(timezone.now()).exists()


def test_a_token_with_an_end_stops_working_then(time_machine):
    create_token(make_actor(), "week", days=7)
    assert ApiToken.objects.usable(timezone.now()).exists()
    time_machine.move_to(timezone.now() + timedelta(days=8))
    assert not ApiToken.objects.usable(timezone.now()).exists()


def test_a_token_never_makes_one_that_reaches_further_than_itself():
    project = make_project()
    actor = make_actor(project, Role.MEMBER)
    reading, _ = make_token(actor.user, project=project, read_only=True)
    with_token = Actor(actor.user, token=reading)
    with pytest.raises(PermissionDeniedError):
        create_token(with_token, "wider", read_only=True)
    with pytest.raises(PermissionDeniedError):
        create_token(with_token, "writing", project=project)
    assert create_token(with_token, "same", project=project, read_only=True)


def test_a_token_never_makes_one_that_outlives_it():
    actor = make_actor(make_project(), Role.MEMBER)
    for_a_week, _ = create_token(actor, "week", days=7)
    with_token = Actor(actor.user, token=for_a_week)
    with pytest.raises(PermissionDeniedError):
        create_token(with_token, "for ever")
    with pytest.raises(PermissionDeniedError):
        create_token(with_token, "month", days=30)
    assert create_token(with_token, "day", days=1)


def test_a_limited_token_can_end_itself_and_no_other():
    actor = make_actor(make_project(), Role.MEMBER)
    other, _ = create_token(actor, "other")
    reading, _ = create_token(actor, "reading", read_only=True)
    with_token = Actor(actor.user, token=reading)
    with pytest.raises(PermissionDeniedError):
        revoke_token(with_token, other.pk)
    revoke_token(with_token, reading.pk)
    reading.refresh_from_db()
    assert reading.revoked_at is not None
