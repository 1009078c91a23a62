"""A group of commands that imports a command's module when it runs, and lists them in sections."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import click
from click.shell_completion import CompletionItem
from click.utils import make_default_short_help

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = "monarch_client.cli"


class LazyGroup(click.Group):
    """A group whose commands are listed by section: `module:attribute`, and one line of help.

    The modules of all commands take three times as long to import as one command takes to run. So
    help and completion import none. The line is the first sentence of the command's docstring.
    """

    sections: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {}
    # The commands of other programs, and the command here that does the same.
    synonyms: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which users need them, not alphabetically."""
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None if there is none of this name."""
        for section in self.sections.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name][0].partition(":")
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
            same = self.synonyms.get(args[0])
            close = [same] if same else difflib.get_close_matches(args[0], self.list_commands(ctx))
            if close:
                error.message += f" Did you mean {' or '.join(close)}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section with its commands, all names in one column."""
        width = max(len(name) for name in self.list_commands(ctx))
        limit = formatter.width - width - 6
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), make_default_short_help(text, limit))
                        for name, (_, text) in section.items()
                    ]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with the incomplete word, and the group's options."""
        commands = [
            CompletionItem(name, help=text)
            for section in self.sections.values()
            for name, (_, text) in section.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)
