"""Texts that the repository must not hold: registry hosts, stray output, machine paths."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.source import (
    ROOT,
    at,
    matches_in,
    name_of,
    python_files,
    repository_files,
    text_of,
)

TEXT = {".py", ".md", ".toml", ".txt", ".lock", ".yml", ".yaml", ".html", ".js", ".css", ".cfg"}
# Where packages come from is the reader's business: pip's own configuration says it.
REGISTRY = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|proxy\.golang\.org|crates\.io)"
    r"|--(?:extra-)?index-url|--find-links"
)
HOME_OF_SOMEBODY = re.compile(r"/home/\w+/|/Users/\w+/")


def texts() -> list[Path]:
    return [
        path
        for path in repository_files()
        if (path.suffix in TEXT or path.name in {"Makefile", "run"})
        and path != Path(__file__).resolve()
    ]


def test_no_text_names_a_registry_or_a_private_machine() -> None:
    offenders = [
        at(path, line, f"names {match[0]}")
        for path in texts()
        for pattern in (REGISTRY, HOME_OF_SOMEBODY)
        for line, match in matches_in(path, pattern)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_module_of_the_server_says_what_it_is_for() -> None:
    offenders = [
        at(path, 1, "does not open with a docstring that says what the module is for")
        for path in python_files("jobs", "monarch_portal")
        if text_of(path).strip() and not text_of(path).startswith(('"""', "#!"))
    ]
    assert not offenders, "\n".join(offenders)


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "helpers", "common", "manager", "handler", "service", "misc", "base_utils"}
    offenders = [name_of(path) for path in python_files() if path.stem in empty]
    assert not offenders, "\n".join(offenders)


def test_the_licence_is_there() -> None:
    assert "Apache License" in text_of(ROOT / "LICENSE")
