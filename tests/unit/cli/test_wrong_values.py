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
from tests.unit.cli.test_machines import NO_PLAN, PLAN, plan_json
from tests.unit.rest.fake_portal import ok, problem

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

    def run(*words: str, status: int = 422, code: str = "invalid_value") -> int:
        transport = httpx.MockTransport(lambda _: problem(status, code))
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


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(404, "not_found", 2), (403, "permission_denied", 125), (409, "conflict", 125)],
)
def test_what_is_unknown_is_a_wrong_value_and_a_refusal_is_not(
    exit_code_of, status, code, exit_code
):
    for words in (("get", "7"), ("wait", "7"), ("cancel", "7"), ("schedule", "pause", "x")):
        assert exit_code_of(*words, status=status, code=code) == exit_code


@pytest.mark.parametrize(("code", "exit_code"), [("not_found", 2), ("illegal_move", 125)])
def test_where_all_jobs_are_refused_the_reason_decides(mportal, portal, code, exit_code):
    refused = {"job": 1, "result": "refused", "message": "No.", "code": code}
    portal.on("POST /projects/rl/jobs/actions", ok({"results": [refused]}))
    assert mportal("hold", "1").exit_code == exit_code


def test_an_estimate_without_a_launch_plan_exits_as_plan_does(mportal, portal):
    portal.on(PLAN, ok(plan_json(problem="No cloud is enabled.", **NO_PLAN)))
    assert mportal("run", "--estimate-cost", "true").exit_code == 125
