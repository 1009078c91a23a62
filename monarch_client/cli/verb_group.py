"""A group of commands about one kind of object, which takes the usual words for one verb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each command has one of these names in help and documentation, and is found by the others.
_SYNONYMS = (("list", "ls"), ("rm", "delete", "remove"))


class VerbGroup(click.Group):
    """A group in which `ls` and `list`, or `rm`, `delete` and `remove`, are one command."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, else one whose name means the same."""
        found = (super(VerbGroup, self).get_command(ctx, name) for name in _names(cmd_name))
        return next((command for command in found if command is not None), None)


def _names(name: str) -> Iterator[str]:
    yield name
    for words in _SYNONYMS:
        if name in words:
            yield from words
