"""Makes a further user and prints the link that lets them in for the first time."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.accounts.add_user import add_user
from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.errors import ConflictError


class Command(BaseCommand):
    """`manage.py add_user NAME`."""

    help = "Make a user; prints a link that signs them in once, within 12 hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the user's name."""
        parser.add_argument("username")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make the user and print the link. Projects take them in on their Members page."""
        try:
            user = add_user(options["username"])
        except ConflictError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{settings.MPORTAL_URL}/sign-in/once/{create_sign_in_link(user)}")
