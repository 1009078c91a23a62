"""Asks what /readyz asks, for containers that serve no HTTP."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monarch_portal.health import faults


class Command(BaseCommand):
    """`manage.py ready`: exit code 0 if this process could work now."""

    help = "End with 0 if database and Redis answer and fit this release, with 1 otherwise."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Ask both; a CommandError says what is wrong."""
        if found := faults():
            raise CommandError("\n".join(f"{part}: {fault}" for part, fault in found.items()))
        self.stdout.write("ready")
