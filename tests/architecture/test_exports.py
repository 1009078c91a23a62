"""`__all__` of the public packages is exact: all public names, and no others."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT, at, python_files, tree_of

# What users import: each name has to be there at run time, too.
PUBLIC_MODULES = ("monarch_client", "monarch_client.spec", "monarch_client.rest")


def packages_with_exports() -> list[Path]:
    return [path for path in python_files() if path.name == "__init__.py" and offered(path)]


def offered(path: Path) -> set[str]:
    """List the public names that a package defines, or re-exports if it defines none."""
    return made(path) or {name for name in imported(path) if not name.startswith("_")}


def made(path: Path) -> set[str]:
    """List the public names that the module itself defines or gives a value."""
    return {name for name in defined(path) | assigned(path) if not name.startswith("_")}


def defined(path: Path) -> set[str]:
    """List the public functions and classes of the module itself."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in tree_of(path).body if isinstance(node, kinds)}
    return {name for name in names if not name.startswith("_")}


def imported(path: Path) -> set[str]:
    """List the names that the module imports from this repository."""
    return {
        alias.asname or alias.name
        for node in tree_of(path).body
        if isinstance(node, ast.ImportFrom) and _is_ours(node)
        for alias in node.names
    }


def assigned(path: Path) -> set[str]:
    """List the names that the module gives a value."""
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
    """Return the names in `__all__`, or none if the module has no `__all__`."""
    found = _assignment_of_all(path)
    return list(ast.literal_eval(found.value)) if found else []


def line_of_all(path: Path) -> int:
    """Return the line of `__all__`, or the first if the module has no `__all__`."""
    found = _assignment_of_all(path)
    return found.lineno if found else 1


def _assignment_of_all(path: Path) -> ast.Assign | None:
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and _names_all(node):
            return node
    return None


def _names_all(node: ast.Assign) -> bool:
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


def wrong_exports(path: Path) -> Iterator[str]:
    """Yield what is wrong with the package's `__all__`, one name at a time."""
    names = exported(path)
    for name in sorted(set(names)):
        if names.count(name) > 1:
            yield f"__all__ lists {name} twice"
    for name in sorted(offered(path) - set(names)):
        yield f"__all__ leaves out {name}"
    for name in sorted(set(names) - made(path) - imported(path)):
        yield f"__all__ lists {name}, which is neither defined nor imported here"


def test_all_lists_exactly_what_a_package_offers() -> None:
    offenders = [
        at(path, line_of_all(path), wrong)
        for path in packages_with_exports()
        for wrong in wrong_exports(path)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_exported_name_of_the_client_is_there() -> None:
    offenders = []
    for module in map(importlib.import_module, PUBLIC_MODULES):
        path = ROOT / module.__name__.replace(".", "/") / "__init__.py"
        offenders += [
            at(path, line_of_all(path), f"{module.__name__} has no {name}")
            for name in exported(path)
            if not hasattr(module, name)
        ]
    assert not offenders, "\n".join(offenders)
