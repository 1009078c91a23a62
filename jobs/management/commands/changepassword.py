"""`manage.py changepassword`: in place of Django's own, which writes no entry in the audit log."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.accounts.set_password import set_password_of
from jobs.models import User

_TRIES = 3


class Command(BaseCommand):
    """`manage.py changepassword [NAME]`."""

    help = "Change a user's password, which is prompted for."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the user's name."""
        parser.add_argument("username", nargs="?", help="by default the name of this login")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set the password, for which it prompts."""
        username = options["username"] or getpass.getuser()
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        set_password_of(user, self._password_for(user))
        self.stdout.write(f"The password of {user} is changed.")

    def _password_for(self, user: User) -> str:
        for _ in range(_TRIES):
            password = getpass.getpass("New password: ")
            if password != getpass.getpass("Repeat the new password: "):
                self.stderr.write("The passwords differ. Try again.")
                continue
            try:
                validate_password(password, user)
            except ValidationError as error:
                self.stderr.write("\n".join(error.messages))
            else:
                return password
        raise CommandError(f"The password of {user} is not changed.")
