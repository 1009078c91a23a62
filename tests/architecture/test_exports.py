"""`__all__` of the public packages is exact: all that is offered, and nothing else."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, name_of, python_files, tree_of


def packages_with_exports() -> list[Path]:
    return [path for path in python_files() if path.name == "__init__.py" and imported(path)]


def imported(path: Path) -> set[str]:
    """Public names a package's `__init__` takes from its own modules or defines."""
    names: set[str] = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.ImportFrom) and _is_ours(node):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


def _is_ours(node: ast.ImportFrom) -> bool:
    top = (node.module or "").split(".")[0]
    return node.level > 0 or top in {"jobs", "monarch_client", "monarch_portal"}


def exported(path: Path) -> list[str]:
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and _names_all(node):
            return list(ast.literal_eval(node.value))
    return []


def _names_all(node: ast.Assign) -> bool:
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


@pytest.mark.parametrize("path", packages_with_exports(), ids=name_of)
def test_all_lists_exactly_what_a_package_offers(path: Path) -> None:
    assert sorted(exported(path)) == sorted(imported(path))


@pytest.mark.parametrize("name", ["monarch_client", "monarch_client.spec", "monarch_client.rest"])
def test_every_exported_name_of_the_client_is_there(name: str) -> None:
    module = importlib.import_module(name)
    path = ROOT / name.replace(".", "/") / "__init__.py"
    if not path.is_file():
        pytest.skip("a single module: nothing to re-export")
    assert [each for each in exported(path) if not hasattr(module, each)] == []
