"""Shows or sets what an administrator of the installation allows a project at most."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.projects.set_limits import set_limits
from jobs.limits import duration_limit, idle_limit
from jobs.models import Project
from jobs.policies.limits import shown_s
from monarch_client.spec.durations import seconds_in

NONE = "none"


class Command(BaseCommand):
    """`manage.py project_limits SLUG [--max-duration 12h] [--max-idle 30]`."""

    help = "Show a project's limits, or set them; `none` takes one away. They hold at once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the project and its new limits."""
        parser.add_argument("project")
        parser.add_argument("--max-duration", help="How long an attempt may run: 12h, or none.")
        parser.add_argument("--max-idle", help="Minutes that a warm cluster may be idle, or none.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set what was given; say what holds."""
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']}.")
        changes: dict[str, int | None] = {}
        if (duration := options["max_duration"]) is not None:
            changes["max_duration_s"] = _seconds(duration)
        if (idle := options["max_idle"]) is not None:
            changes["max_idle_minutes"] = _minutes(idle)
        set_limits(None, project, **changes)
        longest, waits = duration_limit(project), idle_limit(project)
        self.stdout.write(
            "max-duration: " + (f"{shown_s(longest.value)} ({longest.set_by})" if longest else NONE)
        )
        self.stdout.write("max-idle: " + (f"{waits.value} min ({waits.set_by})" if waits else NONE))


def _seconds(text: str) -> int | None:
    if text == NONE:
        return None
    seconds = seconds_in(text)
    if not seconds:
        raise CommandError(f"{text!r} is not a length of time, such as 12h, or none.")
    return seconds


def _minutes(text: str) -> int | None:
    if text == NONE:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**31):
        raise CommandError(f"{text!r} is not a number of minutes, or none.")
    return int(text)
