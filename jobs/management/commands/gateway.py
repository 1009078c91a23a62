"""`manage.py gateway`: the process that joins programs outside of jobs with their workers."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.actions.accounts.releases import why_not_to_start
from jobs.gateway.process import run


class Command(BaseCommand):
    """The command of the gateway process, which runs until SIGTERM or SIGINT, then exits 0."""

    help = "Join programs outside of jobs with their workers."

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve in this thread. CommandError: the database is a newer release's."""
        if why := why_not_to_start():
            raise CommandError(why)
        run()
