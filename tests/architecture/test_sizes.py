"""Sizes that keep the code readable. An exception is listed here, with its reason."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import (
    PACKAGES,
    Function,
    at,
    functions_of,
    name_of,
    python_files,
    repository_files,
    text_of,
)

LONGEST_FUNCTION = 50
# A file has one topic, and is judged by it: split it where a second topic begins, however short it
# is. The limit is a stop, not a target: do not shorten lines to stay below it.
LONGEST_FILE = {".py": 400, ".html": 120, ".js": 150}
MOST_PARAMETERS = 6
EXCEPTIONS: dict[str, str] = {}


def length_of(function: Function) -> int:
    """Count the lines from `def` to the end: signature, docstring and body."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters_of(function: Function) -> int:
    """Count the arguments that a caller has to know."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in {"self", "cls"}])


def excesses_of(function: Function) -> Iterator[str]:
    """Yield each limit that the function exceeds, and by how much."""
    if (lines := length_of(function)) > LONGEST_FUNCTION:
        yield f"has {lines} lines, more than {LONGEST_FUNCTION}"
    if (parameters := parameters_of(function)) > MOST_PARAMETERS:
        yield f"takes {parameters} parameters, more than {MOST_PARAMETERS}"


def sized_files() -> list[Path]:
    """List the files whose length is limited."""
    folders = (*PACKAGES, "templates", "bench", "tests", "examples")
    return [
        path
        for path in repository_files()
        if path.suffix in LONGEST_FILE
        and name_of(path).split("/")[0] in folders
        and "migrations" not in path.parts
    ]


def test_no_file_is_longer_than_its_kind_may_be() -> None:
    offenders = []
    for path in sized_files():
        lines, most = len(text_of(path).splitlines()), LONGEST_FILE[path.suffix]
        if lines > most and name_of(path) not in EXCEPTIONS:
            offenders.append(at(path, most + 1, f"the file has {lines} lines, more than {most}"))
    assert not offenders, "\n".join(offenders)


def test_no_function_is_too_long_or_takes_too_much() -> None:
    offenders = [
        at(path, function.lineno, f"{function.name} {excess}")
        for path in python_files()
        for function in functions_of(path)
        if function.name not in EXCEPTIONS
        for excess in excesses_of(function)
    ]
    assert not offenders, "\n".join(offenders)


def test_most_functions_are_short() -> None:
    offenders = []
    for package in PACKAGES:
        lengths = sorted(
            length_of(function) for path in python_files(package) for function in functions_of(path)
        )
        median, ninth_tenth = statistics.median(lengths), lengths[int(len(lengths) * 0.9)]
        if median >= 10 or ninth_tenth >= 30:
            offenders.append(
                f"{package}/ functions have {median} lines in the median, to be below 10, "
                f"and {ninth_tenth} at the 90th percentile, to be below 30"
            )
    assert not offenders, "\n".join(offenders)


def test_every_exception_still_exists() -> None:
    files = {name_of(path) for path in sized_files()}
    functions = {function.name for path in python_files() for function in functions_of(path)}
    assert set(EXCEPTIONS) <= files | functions
