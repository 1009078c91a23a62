"""What the repository's texts must not hold: registry hosts, stray output, machine paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, name_of, python_files, repository_files

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


@pytest.mark.parametrize("path", texts(), ids=name_of)
def test_no_text_names_a_registry_or_somebodys_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert REGISTRY.findall(text) == []
    assert HOME_OF_SOMEBODY.findall(text) == []


@pytest.mark.parametrize("path", list(python_files("jobs", "monarch_portal")), ids=name_of)
def test_every_module_of_the_server_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or text.startswith(('"""', "#!")), "a module opens with its purpose"


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "helpers", "common", "manager", "handler", "service", "misc", "base_utils"}
    stems = {name_of(path) for path in python_files() if path.stem in empty}
    assert stems == set()


def test_the_licence_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
