"""`manage.py createsuperuser`: Django's own, with an entry in the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from jobs.actions.accounts.add_user import recorded_superusers


class Command(createsuperuser.Command):
    """`manage.py createsuperuser`."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the user, and record it."""
        with recorded_superusers():
            super().handle(*args, **options)
