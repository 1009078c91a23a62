"""The runner starts in any image with Python 3.8: its syntax and its imports must fit there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import name_of, python_files, tree_of

RUNNER = [path for path in python_files("monarch_client") if "runner" in path.parts]
# Modules that joined the standard library after 3.8, and ones that have left it since.
TOO_NEW = {"graphlib", "tomllib", "zoneinfo"}
LEFT_SINCE = {"asynchat", "asyncore", "cgi", "crypt", "distutils", "imp", "pipes", "telnetlib"}
# Programs that run in the interpreter of the workers, where these packages are: the runner starts
# them and imports none of them.
IN_THE_USERS_PYTHON = {
    "worker.py": {"monarch"},
    "mportal_runtime": {"monarch"},
    "serve_mesh_admin.py": {"monarch"},
    "mint_with_cryptography.py": {"cryptography"},
}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def is_allowed(module: str, path: Path) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top in TOO_NEW | LEFT_SINCE:
        return False
    if top == "monarch_client":
        return module.startswith("monarch_client.runner")
    if any(top in IN_THE_USERS_PYTHON.get(part, ()) for part in path.parts):
        return True
    return top in sys.stdlib_module_names or top == "mportal_runtime"


@pytest.mark.parametrize("path", RUNNER, ids=name_of)
def test_the_runner_parses_as_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("path", RUNNER, ids=name_of)
def test_the_runner_imports_the_standard_library_only(path: Path) -> None:
    assert [module for module in imports_of(path) if not is_allowed(module, path)] == []


def test_the_runner_imports_none_of_the_programs_it_starts() -> None:
    started = {name.removesuffix(".py") for name in IN_THE_USERS_PYTHON}
    imported = {
        (name_of(path), module.rpartition(".")[2])
        for path in RUNNER
        if IN_THE_USERS_PYTHON.keys().isdisjoint(path.parts)
        for module in imports_of(path)
    }
    assert {(file, module) for file, module in imported if module in started} == set()
