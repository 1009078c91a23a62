"""The repository's own source, read and parsed once: what the rules in this folder look at."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("jobs", "monarch_client", "monarch_portal")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def repository_files() -> tuple[Path, ...]:
    """Files git tracks, and new ones it does not ignore, as they stand in the working tree."""
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


def python_files(*packages: str) -> Iterator[Path]:
    """The Python files of `packages` (all of the product's by default), migrations apart."""
    for path in repository_files():
        parts = path.relative_to(ROOT).parts
        wanted = path.suffix == ".py" and parts[0] in (packages or PACKAGES)
        if wanted and "migrations" not in parts:
            yield path


@cache
def tree_of(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions_of(path: Path) -> Iterator[Function]:
    """Every function and method of the file, nested ones included."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def name_of(path: Path) -> str:
    """The path as people write it."""
    return path.relative_to(ROOT).as_posix()


def root_name(node: ast.expr) -> str:
    """The name an expression starts from: `Job` for `Job.objects.filter(...).update`."""
    while True:
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""
