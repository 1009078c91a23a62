"""Asks what /readyz asks, for containers that serve no HTTP: do database and Redis answer?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monarch_portal.health import unavailable_parts


class Command(BaseCommand):
    """`manage.py ready`: exit code 0 if this process could work now."""

    help = "End with 0 if the database and Redis answer, with 1 otherwise."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Ask both; a CommandError names what does not answer."""
        missing = unavailable_parts()
        if missing:
            raise CommandError(f"No answer from: {', '.join(missing)}")
        self.stdout.write("ready")
