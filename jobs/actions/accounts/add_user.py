"""Making further users. They have no password: a one-time link lets them in to set one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max

from jobs.audit.record import record
from jobs.errors import ConflictError
from jobs.models import User

# "me" means the caller in filters; clients and servers remove "." and ".." from URL paths.
RESERVED_USERNAMES = frozenset({"me", ".", ".."})


def add_user(username: str) -> User:
    """Create a new, active user in no project. ConflictError: the name is taken or invalid."""
    if username in RESERVED_USERNAMES:
        raise ConflictError(f"The user name {username} is reserved. Choose another.")
    user = User(username=username)
    user.set_unusable_password()
    try:
        user.clean_fields(exclude=["password"])
        with transaction.atomic():
            user.save(force_insert=True)
            record(None, "add_user", user, after={"is_superuser": False})
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
