"""`manage.py portal run|start|stop|status`: the whole portal of this checkout."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """The command that hands over to `python -m monarch_portal.embedded`."""

    help = "Run, start, stop or look at the whole portal: servers, web, worker, beat, follower."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verb and its options."""
        parser.add_argument("verb", choices=["run", "start", "stop", "status", "env"])
        parser.add_argument("--json", action="store_true", help="status as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Become that program: it chooses home and address before it reads the settings."""
        os.chdir(settings.BASE_DIR)
        argv = [sys.executable, "-m", "monarch_portal.embedded", options["verb"]]
        os.execv(sys.executable, [*argv, "--json"] if options["json"] else argv)  # noqa: S606
