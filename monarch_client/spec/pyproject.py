"""The part of pyproject.toml that a specification reads: `[tool.mportal]`, and requirements."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet

from monarch_client.spec.findings import Findings, SpecCode, shortened
from monarch_client.spec.from_object import read_object
from monarch_client.spec.from_yaml import MOST_BYTES
from monarch_client.spec.nodes import Entry, Node

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOOL = ("tool", "mportal")
# One way to match: a second one for the spaces takes minutes for a long line.
_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_PROBLEM_LINE = re.compile(r"at line (\d+)")
_INSTALL = "python3 -m pip install --quiet --disable-pip-version-check --no-input"
_PARTS_OF_VERSION = 3


@dataclass(frozen=True, slots=True)
class Pyproject:
    """The table `[tool.mportal]`, and the script and line of the requirements, if there are any.

    `root` is empty, and there is no script, where the file has no such table.
    """

    root: Node
    setup: tuple[str, int | None] | None = None


class _WrittenFloat(float):
    """A number that keeps its text as written: 1.10 stays 1.10 as the value of a variable."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def __str__(self) -> str:
        return self._text


def read_pyproject(text: str, findings: Findings) -> Pyproject:
    """Read pyproject.toml; `findings.refuse` ends it if that is impossible."""
    if len(text) > MOST_BYTES:
        findings.refuse(SpecCode.TOO_LARGE, f"It is larger than {MOST_BYTES // 1024} KiB.")
    try:
        content = tomllib.loads(text.replace("\r\n", "\n"), parse_float=_WrittenFloat)
    except (ValueError, RecursionError) as error:
        found = _PROBLEM_LINE.search(str(error))
        line = int(found[1]) if found else max(1, text.count("\n"))
        message = f"This is not valid TOML: {shortened(str(error))}."
        findings.refuse(SpecCode.BAD_VALUE, message, line)
    lines = dict(_lines(text))
    own: Any = content
    for name in _TOOL:
        own = own.get(name) if isinstance(own, dict) else None
    if own is None:
        return Pyproject(Node(None))
    root = _located(read_object(own, findings), lines, _TOOL, lines.get(_TOOL))
    project = content.get("project")
    setup = _setup(project, lines, findings) if isinstance(project, dict) else None
    return Pyproject(root, setup)


def _located(
    node: Node, lines: Mapping[tuple[str, ...], int], path: tuple[str, ...], here: int | None
) -> Node:
    """Return the node, which is `here`, with the lines of its keys; `here` where none is known."""
    if not isinstance(node.value, dict):
        return replace(node, line=here)
    entries = {}
    for key, entry in node.value.items():
        where = (*path, key)
        line = lines.get(where, here)
        entries[key] = Entry(line, _located(entry.node, lines, where, line))
    return replace(node, value=entries, line=here)


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the keys and tables that begin a line, in reverse, so that the first one counts."""
    table: tuple[str, ...] = ()
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = _parts(match[1])
            found += [(table[: depth + 1], number) for depth in range(len(table))]
        elif match := _KEY.match(line):
            parts = _parts(match[1])
            found += [((*table, *parts[: depth + 1]), number) for depth in range(len(parts))]
    yield from reversed(found)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(each.strip("\"'") for each in _PART.findall(text))


def _setup(
    project: Mapping[str, Any], lines: Mapping[tuple[str, ...], int], findings: Findings
) -> tuple[str, int | None] | None:
    """Return the script that checks the Python of a node and installs the dependencies."""
    commands: list[str] = []
    python, needed = project.get("requires-python"), project.get("dependencies")
    if python is not None:
        commands += _check_of_python(python, lines.get(("project", "requires-python")), findings)
    line = lines.get(("project", "dependencies"))
    if needed:
        commands.append(" ".join([_INSTALL, *map(shlex.quote, _checked(needed, line, findings))]))
    return (" &&\n".join(commands), line or lines.get(("project",))) if commands else None


def _checked(needed: Any, line: int | None, findings: Findings) -> Iterator[str]:
    for each in needed if isinstance(needed, list) else [needed]:
        if (requirement := _requirement(each)) is not None:
            yield requirement
            continue
        message = f"project.dependencies: {shortened(repr(each))} is not a requirement."
        findings.add("project.dependencies", SpecCode.BAD_VALUE, message, line=line)


def _requirement(text: Any) -> str | None:
    try:
        return str(Requirement(text))
    except (InvalidRequirement, TypeError):
        return None


def _check_of_python(python: Any, line: int | None, findings: Findings) -> Iterator[str]:
    try:
        conditions = [_condition(each) for each in SpecifierSet(python)]
    except (InvalidSpecifier, TypeError, AttributeError, ValueError):
        message = f"project.requires-python: {shortened(repr(python))} is not a range of versions."
        findings.add("project.requires-python", SpecCode.BAD_VALUE, message, line=line)
        return
    said = f"pyproject.toml requires Python {python}, and this node has "
    program = (
        f"import sys; v = sys.version_info[:3]; ({' and '.join(sorted(conditions)) or True}) or "
        f"sys.exit({said!r} + sys.version.split()[0])"
    )
    yield f"python3 -c {shlex.quote(program)}"


def _condition(wanted: Specifier) -> str:
    """Return one part of a range of versions as an expression about `v`."""
    release = tuple(int(each) for each in re.findall(r"\d+", wanted.version))[:_PARTS_OF_VERSION]
    whole = (*release, 0, 0)[:_PARTS_OF_VERSION]
    if wanted.version.endswith(".*"):
        return f"v[:{len(release)}] {wanted.operator} {release}"
    if wanted.operator == "~=":
        return f"v >= {whole} and v[:{len(release) - 1}] == {release[:-1]}"
    return f"v {wanted.operator.replace('===', '==')} {whole}"
