"""The portal never unpickles: bytes of users would run as its code."""

from __future__ import annotations

import ast

from tests.architecture.source import at, nodes_of, python_files

UNPICKLERS = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "_pickle"}


def test_no_module_of_the_portal_imports_an_unpickler() -> None:
    offenders = [
        at(path, node.lineno, f"imports {name}")
        for path in python_files("jobs", "monarch_portal")
        for node in nodes_of(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _imported(node)
        if name.partition(".")[0] in UNPICKLERS
    ]
    assert not offenders, "\n".join(offenders)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]
