"""Each code, setting, address and command that a user can meet has its line in docs/reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
from django.urls import URLPattern

from jobs import statuses
from jobs.api.urls import urlpatterns
from jobs.errors import PortalError
from monarch_client.cli.main import cli
from tests.architecture.source import (
    PACKAGES,
    ROOT,
    at,
    defined_at,
    matches_in,
    name_of,
    nodes_of,
    python_files,
    text_of,
)

REFERENCE = ROOT / "docs" / "reference"
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
READERS = {"env_str", "env_bool", "env_choice", "env_int", "env_seconds", "env_list", "env_secret"}
# Read from the environment, but not ours to document.
FOREIGN = {"DJANGO_SETTINGS_MODULE", "PATH", "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR"}

VOCABULARIES = (
    statuses.JobStatus,
    statuses.StopReason,
    statuses.WaitReason,
    statuses.WorkerStatus,
    statuses.ClusterStatus,
)
FILE_NAMED = re.compile(
    r"`((?:jobs|monarch_client|monarch_portal|templates|tests|bench|docs|examples)/[\w./-]*)`"
)
PICTURES = ROOT / "docs" / "images"
LARGEST_PICTURE = 150_000


def page(name: str) -> str:
    return text_of(REFERENCE / name)


@cache
def documents() -> tuple[Path, ...]:
    """List the pages that people read."""
    pages = *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")
    return tuple(sorted(pages))


def errors() -> Iterator[type[PortalError]]:
    """Yield the class of every error that the product raises on purpose."""
    waiting = [PortalError]
    while waiting:
        error = waiting.pop()
        # A test that ran before in this process may have made one of its own.
        if error.__module__.startswith(PACKAGES):
            yield error
        waiting.extend(error.__subclasses__())


def settings_read() -> Iterator[tuple[str, Path, int]]:
    """Yield (name, file, line) of every variable that the server reads from its environment."""
    for path in python_files("monarch_portal", "jobs"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call | ast.Subscript):
                name = variable_read(node)
                if name.isupper() and name not in FOREIGN:
                    yield name, path, node.lineno


def variable_read(node: ast.Call | ast.Subscript) -> str:
    """Return `X` for env_str("X"), environ.get("X") and environ["X"]; else nothing."""
    if isinstance(node, ast.Call):
        argument, reader = (node.args[0] if node.args else None), node.func
    else:
        argument, reader = node.slice, node.value
    # ast.unparse is slow: leave out the many calls whose argument is not a constant.
    if not isinstance(argument, ast.Constant):
        return ""
    text = ast.unparse(reader)
    if isinstance(node, ast.Call):
        reads = text in READERS or text.endswith("environ.get")
    else:
        reads = text.endswith("environ")
    return str(argument.value) if reads else ""


def endpoints() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield every address of the API, as documents write it, and its view."""
    for pattern in urlpatterns:
        if isinstance(pattern, URLPattern) and hasattr(pattern.pattern, "_route"):
            route = re.sub(r"<\w+:(?:\w+_)?(\w+)>", r"{\1}", str(pattern.pattern))
            yield "/api/v1/" + route, getattr(pattern.callback, "view_class", pattern.callback)


def commands(
    command: click.Command = cli, name: str = "mportal"
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name, the groups' names before its own."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands(below, f"{name} {word}")
    else:
        yield name, command


def test_every_error_code_is_documented() -> None:
    text = page("errors.md")
    offenders = [
        defined_at(error, f"{error.__name__}: errors.md has no row for `{error.code}`")
        for error in errors()
        if not re.search(rf"^\| [^|]*`{error.code}`", text, re.MULTILINE)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_setting_is_documented() -> None:
    text = page("settings.md")
    offenders = [
        at(path, line, f"reads {name}, which settings.md does not name")
        for name, path, line in settings_read()
        if f"`{name}`" not in text
    ]
    assert not offenders, "\n".join(offenders)


def test_every_address_of_the_api_is_documented() -> None:
    text = page("rest.md")
    offenders = [
        defined_at(view, f"{view.__name__}: rest.md does not name {address}")
        for address, view in endpoints()
        if f"{address}`" not in text
    ]
    assert not offenders, "\n".join(offenders)


def test_every_command_is_documented() -> None:
    text = page("cli.md")
    offenders = [
        defined_at(command.callback, f"cli.md does not name `{name}`")
        for name, command in commands()
        if not re.search(rf"`{name}\b", text)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_status_and_reason_is_documented() -> None:
    text = page("statuses.md")
    offenders = [
        defined_at(vocabulary, f"{vocabulary.__name__}: statuses.md has no row for `{each.value}`")
        for vocabulary in VOCABULARIES
        for each in vocabulary
        if f"| `{each.value}` |" not in text
    ]
    assert not offenders, "\n".join(offenders)


def test_every_reason_leads_where_the_reference_says() -> None:
    text = page("statuses.md")
    offenders = [
        defined_at(statuses.StopReason, f"statuses.md has no row `{reason.value}` with `{final}`")
        for reason in statuses.StopReason
        if f"| `{reason.value}` | `{(final := reason.final_status.value)}` |" not in text
    ]
    assert not offenders, "\n".join(offenders)


def test_every_link_inside_the_documents_leads_somewhere() -> None:
    offenders = [
        at(document, line, f"links to {match[1]}, which does not exist")
        for document in documents()
        for line, match in matches_in(document, LINK)
        if not (document.parent / match[1]).exists()
    ]
    assert not offenders, "\n".join(offenders)


def test_the_index_of_the_documents_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {index.parent / match[1] for _, match in matches_in(index, LINK)}
    pages = {*index.parent.glob("*/*.md")} - {*index.parent.glob("adr/0*.md")}
    assert sorted(pages - listed) == []


def wrong_with_picture(picture: Path) -> Iterator[str]:
    """Yield what is wrong with a picture: its size, or that no page shows and describes it."""
    if (size := picture.stat().st_size) >= LARGEST_PICTURE:
        yield f"has {size:,} bytes, to be below {LARGEST_PICTURE:,}"
    ways = (
        rf"!\[[^\]]{{20,}}\]\([^)]*{picture.name}\)",
        rf'<img alt="[^"]{{20,}}" src="[^"]*{picture.name}">',
        rf'<source media="[^"]+" srcset="[^"]*{picture.name}">',
    )
    if not any(re.search(way, text_of(document)) for way in ways for document in documents()):
        yield "is shown nowhere with a text of at least 20 characters for readers without images"


def test_every_picture_is_small_and_shown_somewhere_with_words_for_those_who_see_none() -> None:
    offenders = [
        f"{name_of(picture)} {wrong}"
        for picture in sorted(PICTURES.iterdir())
        for wrong in wrong_with_picture(picture)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_file_that_a_document_names_exists() -> None:
    offenders = [
        at(document, line, f"names {match[1]}, which does not exist")
        for document in documents()
        for line, match in matches_in(document, FILE_NAMED)
        if not (ROOT / match[1]).exists()
    ]
    assert not offenders, "\n".join(offenders)
