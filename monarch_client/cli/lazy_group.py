"""A group of commands that imports each command's module when it is used, and groups the help."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = "monarch_client.cli"


class LazyGroup(click.Group):
    """A group whose commands are listed as `module:attribute`, by section of its help.

    The modules of all commands take three times as long to import as one command takes to run.
    """

    sections: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which users need them, not alphabetically."""
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None if there is none of this name."""
        for section in self.sections.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name].partition(":")
                command: click.Command = getattr(import_module(f"{_PACKAGE}.{module}"), attribute)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. UsageError names the closest commands."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx))
            if close:
                error.message += f" Did you mean {' or '.join(close)}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section with its commands, all names in one column."""
        width = max(len(name) for name in self.list_commands(ctx))
        for title, section in self.sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in section]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                        for name, command in commands
                        if command
                    ]
                )
