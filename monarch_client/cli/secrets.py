"""`mportal secret`: values go in by a prompt, a file or a pipe, never as an argument."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

import click

from monarch_client.cli import completion
from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, age, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say, tell
from monarch_client.cli.verb_group import VerbGroup

if TYPE_CHECKING:
    from monarch_client.wire.projects import Secret

COLUMNS = {
    "NAME": lambda secret: secret.name,
    "SET": lambda secret: f"{age(secret.updated_at)} ago",
    "BY": lambda secret: secret.updated_by or "-",
    "IN LOGS": lambda secret: "masked" if secret.is_masked else "too short to be masked",
}


@click.group(cls=VerbGroup)
def secret() -> None:
    """Manage secrets of a project."""


@secret.command("set")
@click.argument("name", shell_complete=completion.secrets)
@click.option(
    "--from-file",
    type=click.File("rb"),
    help="Read the value from a file; - is standard input.",
)
@project_option
@output_options
@pass_session
def secret_set(
    session: Session, *, name: str, from_file: IO[bytes] | None, project: str | None, output: Output
) -> None:
    """Set a secret from a prompt, a file or a pipe."""
    slug = session.project(project)
    made = session.client.set_secret(slug, name, _value(name, from_file))
    output.one(made, lambda: _show(made), key="name")


@secret.command("list")
@project_option
@output_options
@pass_session
def secret_list(session: Session, *, project: str | None, output: Output) -> None:
    """List names, users and times. Values are never shown."""
    output.rows(
        session.client.secrets(session.project(project)),
        COLUMNS,
        key="name",
        empty="No secrets. To set one: mportal secret set NAME",
    )


@secret.command("delete")
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.secrets
)
@project_option
@pass_session
def secret_delete(session: Session, *, names: tuple[str, ...], project: str | None) -> None:
    """Delete secrets. Jobs that name one fail at their start."""
    slug = session.project(project)
    for name in names:
        session.client.delete_secret(slug, name)
        say(f"{name}: deleted")


def _value(name: str, file: IO[bytes] | None) -> str:
    if file is None and _is_terminal():
        answer: str = click.prompt(
            f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True
        )
        return answer
    content = (file or sys.stdin.buffer).read()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise click.UsageError("The value is not text in UTF-8: encode it, as in base64.") from None
    return _without_end(text)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _without_end(text: str) -> str:
    """Return a one-line value without the newline of `echo` and editors, others as they are."""
    lines = text.splitlines()
    return lines[0] if len(lines) == 1 and text != lines[0] and lines[0] else text


def _show(made: Secret) -> None:
    say(f"{made.name}: set")
    if not made.is_masked:
        tell("It is too short to be masked in logs: that takes 6 characters.")
