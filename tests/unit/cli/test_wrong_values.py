"""Every command exits with 2 for a value that the portal finds wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import pytest
from click.testing import CliRunner

from monarch_client.cli.main import cli
from monarch_client.cli.session import Session
from monarch_client.rest.config import Config
from tests.each_case import check_each
from tests.unit.rest.fake_portal import problem

Words = tuple[str, ...]
# It connects by itself, without the client of the session.
CONNECTS_BY_ITSELF = ("ssh",)
# To prompts, such as that for the name of a project to delete.
ANSWERS = "x\n" * 3


def commands(group: click.Group, path: Words = ()) -> Iterator[tuple[Words, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif (*path, name) != CONNECTS_BY_ITSELF:
            yield (*path, name), command


def right_value(parameter: click.Parameter, file: Path) -> str:
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return kind.choices[0]
    if isinstance(kind, click.Path):
        return str(file)
    is_number = isinstance(kind, type(click.INT))
    return "1" if is_number else "x"


def required(command: click.Command, file: Path) -> list[str]:
    """Return the words that the command requires, and the one that answers its question."""
    options: list[str] = []
    arguments: list[str] = []
    for parameter in command.params:
        if parameter.name == "yes":
            options.append("--yes")
        elif parameter.required and isinstance(parameter, click.Argument):
            arguments.append(right_value(parameter, file))
        elif parameter.required:
            options += [parameter.opts[-1], right_value(parameter, file)]
    return [*options, *arguments]


@pytest.fixture
def exit_code_of(monkeypatch, tmp_path):
    """Return a function that runs a command on a portal that finds each request wrong."""
    monkeypatch.chdir(tmp_path)
    transport = httpx.MockTransport(lambda _: problem(422, "invalid_value"))

    def run(*words: str) -> int:
        options = {"transport": transport, "sleep": lambda _: None}
        session = Session(Config("http://portal", "mpt_x", "rl"), options)
        return CliRunner().invoke(cli, list(words), obj=session, input=ANSWERS).exit_code

    return run


def test_every_command_exits_with_2_for_a_value_that_the_portal_finds_wrong(exit_code_of, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("run: echo hi\n")

    def check(path, command):
        assert exit_code_of(*path, *required(command, file)) == 2

    check_each(commands(cli), check)
