"""Create users. They have no password: a one-time link signs them in to set one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max

from jobs.actions.accounts.sign_in_links import Link, new_link
from jobs.audit.record import record
from jobs.errors import ConflictError
from jobs.models import User
from jobs.permissions import Actor, require_token_reach, require_users

# "me" means the caller in filters; clients and servers remove "." and ".." from URL paths.
RESERVED_USERNAMES = frozenset({"me", ".", ".."})


@transaction.atomic
def add_user(username: str) -> User:
    """Create a user by a command on the portal's own host, in no project.

    ConflictError: the name is taken or invalid.
    """
    user = _stored(username)
    record(None, "add_user", user, after={"is_superuser": False})
    return user


@transaction.atomic
def add_user_with_link(actor: Actor, username: str, *, hours: int) -> Link:
    """Create a user in no project; return the link that signs them in once within `hours`.

    ConflictError: the name is taken or invalid. PermissionDeniedError: a token that expires.
    """
    require_users(actor, to_change=True)
    require_token_reach(actor)
    link = new_link(_stored(username), timedelta(hours=hours))
    expires_at = link.expires_at.isoformat()
    record(actor, "invite_user", link.user, after={"link_expires_at": expires_at})
    return link


def _stored(username: str) -> User:
    """Return a new, active user without a password, of the name in Unicode's form NFKC."""
    # The sign-in form normalizes as well: another form of the name could never sign in.
    username = User.normalize_username(username)
    if username in RESERVED_USERNAMES:
        raise ConflictError(f"The user name {username} is reserved. Choose another.")
    # The database takes no NUL, which `clean_fields` refuses.
    taken = None if "\0" in username else User.objects.filter(username__iexact=username).first()
    if taken is not None:
        raise ConflictError(f"There is a user {taken} already. Choose another name.")
    user = User(username=username)
    user.set_unusable_password()
    try:
        user.clean_fields(exclude=["password"])
        with transaction.atomic():
            user.save(force_insert=True)
    except ValidationError as error:
        raise ConflictError(f"{username!r} is no user name: {' '.join(error.messages)}") from error
    except IntegrityError as error:
        raise ConflictError(f"There is a user {username} already.") from error
    return user


@contextmanager
def recorded_superusers() -> Iterator[None]:
    """Record the superusers that the block makes, such as Django's own command."""
    with transaction.atomic():
        newest = User.objects.aggregate(pk=Max("pk"))["pk"] or 0
        yield
        for user in User.objects.filter(pk__gt=newest, is_superuser=True):
            record(None, "add_user", user, after={"is_superuser": True})
