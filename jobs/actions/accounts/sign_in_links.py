"""One-time sign-in links: printed by `make run`, and how a user without a password gets in."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction

from jobs.audit.record import record
from jobs.errors import NotFoundError
from jobs.ground import clock
from jobs.models import SignInLink, User
from jobs.models.api_token import token_digest
from jobs.permissions import Actor

LINK_LIFETIME = timedelta(hours=12)


@transaction.atomic
def create_sign_in_link(user: User) -> str:
    """Create a link that signs `user` in once, within 12 hours, and return its secret part."""
    secret = secrets.token_urlsafe(24)
    expires_at = clock.now() + LINK_LIFETIME
    SignInLink.objects.create(
        user=user,
        digest=token_digest(secret),
        expires_at=expires_at,
    )
    record(None, "create_sign_in_link", user, after={"expires_at": expires_at.isoformat()})
    return secret


def redeem(secret: str) -> User:
    """Use up an unused link and return its user. NotFoundError otherwise."""
    now = clock.now()
    digest = token_digest(secret)
    # The guarded update is what makes two clicks one sign-in.
    fresh = SignInLink.objects.filter(digest=digest, used_at=None, expires_at__gt=now)
    with transaction.atomic():
        if not fresh.update(used_at=now):
            raise NotFoundError("This sign-in link has been used or has expired.")
        user = User.objects.get(signinlink__digest=digest)
        record(Actor(user), "use_sign_in_link", user)
    if not user.is_active:
        raise NotFoundError("This account is not active.")
    return user
