"""One-time sign-in links: printed by `make run`, and how a user without a password signs in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.ground import clock
from jobs.models import SignInLink, User
from jobs.models.api_token import token_digest
from jobs.permissions import Actor, require_token_reach, require_users, user_for

LINK_LIFETIME = timedelta(hours=12)
MOST_HOURS = 30 * 24


@dataclass(frozen=True, slots=True)
class Link:
    """A new link that signs `user` in once. Its secret is stored nowhere."""

    user: User
    secret: str
    expires_at: datetime


def new_link(user: User, lifetime: timedelta) -> Link:
    """Store a link that signs `user` in once within `lifetime`, and return it."""
    secret = secrets.token_urlsafe(24)
    expires_at = clock.now() + lifetime
    SignInLink.objects.create(user=user, digest=token_digest(secret), expires_at=expires_at)
    return Link(user, secret, expires_at)


@transaction.atomic
def create_sign_in_link(user: User) -> str:
    """Create a link by a command on the portal's own host, and return its secret part."""
    link = new_link(user, LINK_LIFETIME)
    after = {"expires_at": link.expires_at.isoformat()}
    record(None, "create_sign_in_link", user, after=after)
    return link.secret


@transaction.atomic
def replace_sign_in_link(actor: Actor, username: str, *, hours: int) -> Link:
    """Create a link that signs a user in once; their earlier links no longer work.

    ConflictError: the user is disabled. PermissionDeniedError: a token that expires.
    """
    require_users(actor, to_change=True)
    require_token_reach(actor)
    # Locked against a disabling at the same time, which ends the links.
    user = User.objects.select_for_update(no_key=True).get(pk=user_for(username).pk)
    if not user.is_active:
        raise ConflictError(f"{user} is disabled. Enable the account first.")
    end_links(user)
    link = new_link(user, timedelta(hours=hours))
    after = {"expires_at": link.expires_at.isoformat()}
    record(actor, "create_sign_in_link", user, after=after)
    return link


def end_links(user: User) -> None:
    """Expire the links of `user` that were not used."""
    now = clock.now()
    SignInLink.objects.filter(user=user, used_at=None, expires_at__gt=now).update(expires_at=now)


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
