"""The repository's own source, read and parsed once per run, for the rules in this folder.

A rule is one test. It collects every offender in the repository, each as `path:line what is wrong`
(written by `at` or `defined_at`), and asserts that there are none. No file is read at import time:
pytest-xdist collects these modules once per worker.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("jobs", "monarch_client", "monarch_portal")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def repository_files() -> tuple[Path, ...]:
    """List the files that git tracks, and new ones that it does not ignore, in the working tree."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        # An unpacked archive has no git: then everything that is not hidden or installed counts.
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if _is_ours(path)]
    return tuple(ROOT / name for name in sorted(set(listed)) if name and (ROOT / name).is_file())


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not any(part in {".venv", ".git", "__pycache__", ".results"} for part in parts)


@cache
def python_files(*packages: str) -> tuple[Path, ...]:
    """List the Python files of `packages` (by default the product's), without migrations."""
    return tuple(
        path
        for path in repository_files()
        if path.suffix == ".py"
        and (parts := path.relative_to(ROOT).parts)[0] in (packages or PACKAGES)
        and "migrations" not in parts
    )


@cache
def text_of(path: Path) -> str:
    """Read the file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name_of(path)} is not UTF-8: {error}") from error


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse the file into a syntax tree."""
    return ast.parse(text_of(path), filename=str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """List every node of the file's syntax tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(path)))


@cache
def functions_of(path: Path) -> tuple[Function, ...]:
    """List every function and method of the file, nested ones included."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(node for node in nodes_of(path) if isinstance(node, kinds))


def matches_in(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield each match of `pattern` in the file, with the line of its first visible character."""
    text = text_of(path)
    for match in pattern.finditer(text):
        blank = len(match[0]) - len(match[0].lstrip())
        yield text.count("\n", 0, match.start() + blank) + 1, match


@cache
def name_of(path: Path) -> str:
    """Return the path as people write it: relative to the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def at(path: Path, line: int, wrong: str) -> str:
    """Describe one offender in one line: `path:line what is wrong`."""
    return f"{name_of(path)}:{line} {' '.join(wrong.split())}"


def defined_at(thing: type | Callable[..., object], wrong: str) -> str:
    """Describe an offender that is a class or a function, by the line of its definition."""
    thing = inspect.unwrap(thing)
    return at(Path(inspect.getfile(thing)), inspect.getsourcelines(thing)[1], wrong)


def missing_definition(file: str, name: str) -> str:
    """Describe what a document names and the repository lacks; "" if the definition exists."""
    if not (ROOT / file).is_file():
        return f"names {file}, which does not exist"
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in nodes_of(ROOT / file) if isinstance(node, kinds)}
    if name and name not in defined:
        return f"names {name}, which {file} does not define"
    return ""


def root_name(node: ast.expr) -> str:
    """Return the name an expression starts from: `Job` for `Job.objects.filter(...).update`."""
    while True:
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""
