"""Whatever a user can meet has its line in docs/reference: codes, settings, addresses, commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import click
import pytest

from jobs import statuses
from jobs.api.urls import urlpatterns
from jobs.errors import PortalError
from monarch_client.cli.main import cli
from tests.architecture.source import ROOT, python_files, tree_of

REFERENCE = ROOT / "docs" / "reference"
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
READERS = {"env_str", "env_bool", "env_choice", "env_int", "env_seconds", "env_list", "env_secret"}
# Read from the environment, but not ours to document.
FOREIGN = {"DJANGO_SETTINGS_MODULE", "PATH", "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR"}


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


def error_codes() -> Iterator[str]:
    """The code of every error that is raised on purpose."""
    waiting = [PortalError]
    while waiting:
        error = waiting.pop()
        yield error.code
        waiting.extend(error.__subclasses__())


def settings_read() -> set[str]:
    """Every variable that the server reads."""
    nodes = (
        node for path in python_files("monarch_portal", "jobs") for node in ast.walk(tree_of(path))
    )
    return {name for node in nodes if (name := variable_read(node)).isupper()} - FOREIGN


def variable_read(node: ast.AST) -> str:
    """`X` for env_str("X"), environ.get("X") and environ["X"]; else nothing."""
    argument: ast.expr | None = None
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        if called in READERS or called.endswith("environ.get"):
            argument = node.args[0]
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
        argument = node.slice
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


def endpoints() -> list[str]:
    """Every address of the API, as documents write it."""
    routes = [str(pattern.pattern) for pattern in urlpatterns if hasattr(pattern.pattern, "_route")]
    return ["/api/v1/" + re.sub(r"<\w+:(?:\w+_)?(\w+)>", r"{\1}", route) for route in routes]


def commands(group: click.Command = cli, name: str = "mportal") -> Iterator[str]:
    """Every command, with the groups before it."""
    if isinstance(group, click.Group):
        for word, command in group.commands.items():
            yield from commands(command, f"{name} {word}")
    else:
        yield name


@pytest.mark.parametrize("code", sorted(set(error_codes())))
def test_every_error_code_is_documented(code: str) -> None:
    assert re.search(rf"^\| [^|]*`{code}`", page("errors.md"), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(settings_read()))
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in page("settings.md")


@pytest.mark.parametrize("address", endpoints())
def test_every_address_of_the_api_is_documented(address: str) -> None:
    assert f"{address}`" in page("rest.md")


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`{command}\b", page("cli.md"))


@pytest.mark.parametrize(
    "vocabulary",
    [
        statuses.JobStatus,
        statuses.StopReason,
        statuses.WaitReason,
        statuses.WorkerStatus,
        statuses.ClusterStatus,
    ],
)
def test_every_status_and_reason_is_documented(vocabulary: type[Enum]) -> None:
    text = page("statuses.md")
    assert [each.value for each in vocabulary if f"| `{each.value}` |" not in text] == []


def test_every_reason_leads_where_the_reference_says() -> None:
    text = page("statuses.md")
    wrong = [
        reason.value
        for reason in statuses.StopReason
        if f"| `{reason.value}` | `{reason.final_status.value}` |" not in text
    ]
    assert wrong == []


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
FILE_NAMED = re.compile(
    r"`((?:jobs|monarch_client|monarch_portal|templates|tests|bench|docs|examples)/[\w./-]*)`"
)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_link_inside_the_documents_leads_somewhere(document: Path) -> None:
    targets = LINK.findall(document.read_text())
    assert [each for each in targets if not (document.parent / each).exists()] == []


PICTURES = ROOT / "docs" / "images"
LARGEST_PICTURE = 150_000


@pytest.mark.parametrize("picture", sorted(PICTURES.iterdir()), ids=relative)
def test_every_picture_is_small_and_shown_somewhere_with_words_for_those_who_see_none(
    picture: Path,
) -> None:
    assert picture.stat().st_size < LARGEST_PICTURE
    ways = (
        rf"!\[[^\]]{{20,}}\]\([^)]*{picture.name}\)",
        rf'<img alt="[^"]{{20,}}" src="[^"]*{picture.name}">',
        rf'<source media="[^"]+" srcset="[^"]*{picture.name}">',
    )
    texts = [document.read_text() for document in DOCUMENTS]
    assert any(re.search(way, text) for way in ways for text in texts)


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    named = FILE_NAMED.findall(document.read_text())
    assert [each for each in named if not (ROOT / each).exists()] == []
