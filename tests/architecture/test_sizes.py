"""Sizes that keep the code readable. An exception is listed here, with its reason."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.architecture.source import (
    PACKAGES,
    Function,
    functions_of,
    name_of,
    python_files,
    repository_files,
)

LONGEST_FUNCTION = 50
LONGEST_FILE = {".py": 300, ".html": 120, ".js": 150}
MOST_PARAMETERS = 6
EXCEPTIONS: dict[str, str] = {}


def length_of(function: Function) -> int:
    """Lines from `def` to the end: signature, docstring and body."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters_of(function: Function) -> int:
    """How many arguments a caller has to think of."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in {"self", "cls"}])


def sized_files() -> list[Path]:
    folders = (*PACKAGES, "templates", "bench", "tests", "examples")
    return [
        path
        for path in repository_files()
        if path.suffix in LONGEST_FILE
        and name_of(path).split("/")[0] in folders
        and "migrations" not in path.parts
    ]


@pytest.mark.parametrize("path", sized_files(), ids=name_of)
def test_no_file_is_longer_than_its_kind_may_be(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_FILE[path.suffix] or name_of(path) in EXCEPTIONS


@pytest.mark.parametrize("path", list(python_files()), ids=name_of)
def test_no_function_is_too_long_or_takes_too_much(path: Path) -> None:
    offenders = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for function in functions_of(path)
        if length_of(function) > LONGEST_FUNCTION or parameters_of(function) > MOST_PARAMETERS
    ]
    assert [name for name in offenders if name.split(" ")[1] not in EXCEPTIONS] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_most_functions_are_short(package: str) -> None:
    lengths = sorted(
        length_of(function) for path in python_files(package) for function in functions_of(path)
    )
    assert statistics.median(lengths) < 10
    assert lengths[int(len(lengths) * 0.9)] < 30


def test_every_exception_still_exists() -> None:
    files = {name_of(path) for path in sized_files()}
    functions = {function.name for path in python_files() for function in functions_of(path)}
    assert set(EXCEPTIONS) <= files | functions
