"""Seals users' secrets with another key: what one does when a key may have become known."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.projects.secrets import reseal_secrets
from jobs.errors import SecretsUnavailableError
from jobs.ground.seals import new_key
from monarch_portal.embedded.home import Home


class Command(BaseCommand):
    """`manage.py rotate_secrets [--new-key | --drop-old-keys]`."""

    help = (
        "Seal all secrets with the newest key. --new-key first makes one: restart the portal, and "
        "run this again without it; then --drop-old-keys forgets the others."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--new-key", action="store_true", help="make a key, and seal nothing yet"
        )
        which.add_argument("--drop-old-keys", action="store_true", help="then keep the newest only")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Reseal, or make a key and say what comes next."""
        if options["new_key"]:
            self._make_key()
            return
        try:
            count = reseal_secrets()
        except SecretsUnavailableError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Sealed with the newest key: {count}.")
        if options["drop_old_keys"]:
            self._drop_old_keys()

    def _make_key(self) -> None:
        key = new_key()
        if not _keeps_keys_itself():
            self.stdout.write(key)
            self.stderr.write("Put it first in MPORTAL_SECRET_KEYS, before a comma.")
            return
        home = Home(settings.MPORTAL_HOME)
        home.write_sealing_keys([key, *home.sealing_keys])
        self.stdout.write("The key is made. Restart the portal, and run this without --new-key.")

    def _drop_old_keys(self) -> None:
        if not _keeps_keys_itself():
            self.stderr.write("Keep only the first key in MPORTAL_SECRET_KEYS, and restart.")
            return
        home = Home(settings.MPORTAL_HOME)
        if home.sealing_keys[:1] != settings.MPORTAL_SECRET_KEYS[:1]:
            raise CommandError("There is a newer key than the one this command began with.")
        home.write_sealing_keys(home.sealing_keys[:1])
        self.stdout.write("Older keys are forgotten. Restart the portal.")


def _keeps_keys_itself() -> bool:
    """Whether the keys are in this installation's home, and not in its environment."""
    home = Home(settings.MPORTAL_HOME)
    return bool(settings.MPORTAL_EMBEDDED) and home.sealing_keys == settings.MPORTAL_SECRET_KEYS
