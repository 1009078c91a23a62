"""`manage.py cloud`: credentials of clouds, on the portal's own host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.sharing.clouds import add_cloud, remove_cloud
from jobs.backends.clouds import KINDS
from jobs.errors import PortalError
from jobs.readers.cloud_list import cloud_check, cloud_list

# These are given as the name of a file, or - for standard input.
_OF_FILES = ("file", "key", "client_secret", "api_key")
_TEXTS = ("name", "host", "user", "port", "proxy_jump", "profile", "access_key_id")
_IDS = ("subscription_id", "tenant_id", "client_id")


class Command(BaseCommand):
    """`manage.py cloud list|add|remove|check`."""

    help = f"Give SkyPilot the credentials of a cloud: {', '.join(KINDS)}."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verbs and their options."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list")
        verbs.add_parser("check")
        adding = verbs.add_parser("add")
        adding.add_argument("kind")
        for field in _OF_FILES:
            adding.add_argument(f"--{field.replace('_', '-')}", dest=field, metavar="FILE")
        for field in (*_TEXTS, *_IDS):
            adding.add_argument(f"--{field.replace('_', '-')}", dest=field)
        adding.add_argument(
            "--allow-exec",
            action="store_true",
            help="take credentials that run programs on this host, or that name its files",
        )
        removing = verbs.add_parser("remove")
        removing.add_argument("kind")
        removing.add_argument("name")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do what the verb says."""
        try:
            getattr(self, f"_{options['verb']}")(options)
        except PortalError as error:
            raise CommandError(error.message) from error

    def _list(self, _: dict[str, Any]) -> None:
        for entry in cloud_list(None):
            self.stdout.write(f"{entry.kind}  {entry.name}  {entry.about}")

    def _check(self, _: dict[str, Any]) -> None:
        for cloud in cloud_check(None):
            self.stdout.write(f"{cloud.name}  {'enabled' if cloud.is_enabled else cloud.reason}")

    def _add(self, options: dict[str, Any]) -> None:
        content = {field: options[field] for field in (*_TEXTS, *_IDS) if options[field]}
        for field in _OF_FILES:
            if options[field]:
                content[field] = _content_of(options[field])
        names = add_cloud(None, options["kind"], content, allow_exec=options["allow_exec"])
        self.stdout.write(f"{options['kind']}: {', '.join(names)} added")

    def _remove(self, options: dict[str, Any]) -> None:
        remove_cloud(None, options["kind"], options["name"])
        self.stdout.write(f"{options['kind']}: {options['name']} removed")


def _content_of(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} can't be read: {error}") from error
