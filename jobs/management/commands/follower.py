"""`manage.py follower`: the process that reads frames where nodes cannot reach the portal."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.actions.accounts.releases import why_not_to_start
from jobs.follower.loop import FollowerLoop


class Command(BaseCommand):
    """The command of the follower process, which runs until SIGTERM or SIGINT, then exits 0."""

    help = "Follow jobs whose nodes cannot push to the portal."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the loop in this thread. CommandError: the database is a newer release's."""
        if why := why_not_to_start():
            raise CommandError(why)
        FollowerLoop().run()
