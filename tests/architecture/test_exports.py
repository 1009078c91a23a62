"""`__all__` of the public packages is exact: all that is offered, and nothing else."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, name_of, python_files, tree_of


def packages_with_exports() -> list[Path]:
    return [path for path in python_files() if path.name == "__init__.py" and offered(path)]


def offered(path: Path) -> set[str]:
    """Public names of a package: those it makes; where it makes none, those it re-exports."""
    return made(path) or {name for name in imported(path) if not name.startswith("_")}


def made(path: Path) -> set[str]:
    """Public names that the module itself defines or gives a value."""
    return {name for name in defined(path) | assigned(path) if not name.startswith("_")}


def defined(path: Path) -> set[str]:
    """Public functions and classes of the module itself."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in tree_of(path).body if isinstance(node, kinds)}
    return {name for name in names if not name.startswith("_")}


def imported(path: Path) -> set[str]:
    """Names that the module takes from ours."""
    return {
        alias.asname or alias.name
        for node in tree_of(path).body
        if isinstance(node, ast.ImportFrom) and _is_ours(node)
        for alias in node.names
    }


def assigned(path: Path) -> set[str]:
    """Names that the module gives a value."""
    return {
        target.id
        for node in tree_of(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


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
    names = exported(path)
    assert sorted(names) == sorted(set(names))
    assert offered(path) <= set(names) <= made(path) | imported(path)


@pytest.mark.parametrize("name", ["monarch_client", "monarch_client.spec", "monarch_client.rest"])
def test_every_exported_name_of_the_client_is_there(name: str) -> None:
    module = importlib.import_module(name)
    path = ROOT / name.replace(".", "/") / "__init__.py"
    assert [each for each in exported(path) if not hasattr(module, each)] == []
