"""Prints a link that signs a user in once: how users without a password get in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.accounts.bootstrap import bootstrap
from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import User


class Command(BaseCommand):
    """`manage.py sign_in_link [--user NAME]`."""

    help = "Print a link that signs a user in once, within 12 hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the user to sign in, who is the first administrator by default."""
        parser.add_argument("--user", help="a user name; the first administrator if left out")
        parser.add_argument("--path-only", action="store_true", help="leave out the address")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make the link and print it."""
        path = f"/sign-in/once/{create_sign_in_link(_user(options['user']))}"
        self.stdout.write(path if options["path_only"] else settings.MPORTAL_URL + path)


def _user(name: str | None) -> User:
    if not name:
        return bootstrap().user
    try:
        return User.objects.get(username=name)
    except User.DoesNotExist as error:
        raise CommandError(f"There is no user {name!r}.") from error
