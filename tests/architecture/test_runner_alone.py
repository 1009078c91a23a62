"""The runner starts in any image with Python 3.8: its syntax and its imports must fit there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import at, nodes_of, python_files, text_of

# Modules that joined the standard library after 3.8, and ones that have left it since.
TOO_NEW = {"graphlib", "tomllib", "zoneinfo"}
LEFT_SINCE = {"asynchat", "asyncore", "cgi", "crypt", "distutils", "imp", "pipes", "telnetlib"}
# Programs that run in the interpreter of the workers, where these packages are: the runner starts
# them and imports none of them.
IN_THE_USERS_PYTHON = {
    "worker.py": {"monarch"},
    "mportal_runtime": {"monarch"},
    "mportal_proxies": {"monarch", "numpy"},
    "serve_mesh_admin.py": {"monarch"},
    "mint_with_cryptography.py": {"cryptography"},
    "sign_with_cryptography.py": {"cryptography"},
}


def runner_files() -> list[Path]:
    """List the files of the runner, and the module of the client that travels with it."""
    return [
        path
        for path in python_files("monarch_client")
        if "runner" in path.parts or path.name == "crash_points.py"
    ]


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every absolute import of the file."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def errors_in_python_3_8(path: Path) -> Iterator[str]:
    """Yield the syntax error that Python 3.8 would find first in the file, if any."""
    try:
        ast.parse(text_of(path), feature_version=(3, 8))
    except SyntaxError as error:
        yield at(path, error.lineno or 1, error.msg)


def is_allowed(module: str, path: Path) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top in TOO_NEW | LEFT_SINCE:
        return False
    if top == "monarch_client":
        return module.startswith(("monarch_client.runner", "monarch_client.crash_points"))
    if any(top in IN_THE_USERS_PYTHON.get(part, ()) for part in path.parts):
        return True
    return top in sys.stdlib_module_names or top == "mportal_runtime"


def test_the_runner_parses_as_python_3_8() -> None:
    offenders = [each for path in runner_files() for each in errors_in_python_3_8(path)]
    assert not offenders, "\n".join(offenders)


def test_the_runner_imports_the_standard_library_only() -> None:
    offenders = [
        at(path, line, f"imports {module}")
        for path in runner_files()
        for line, module in imports_of(path)
        if not is_allowed(module, path)
    ]
    assert not offenders, "\n".join(offenders)


def test_the_runner_imports_none_of_the_programs_it_starts() -> None:
    started = {name.removesuffix(".py") for name in IN_THE_USERS_PYTHON}
    offenders = [
        at(path, line, f"imports {module}, a program that it starts")
        for path in runner_files()
        if IN_THE_USERS_PYTHON.keys().isdisjoint(path.parts)
        for line, module in imports_of(path)
        if module.rpartition(".")[2] in started
    ]
    assert not offenders, "\n".join(offenders)
