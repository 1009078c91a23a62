"""Read the text of a specification, and show the errors in it under its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.spec.files import text_in

if TYPE_CHECKING:
    from monarch_client.errors import SpecError

_SHOWN_AROUND = 1


def text_from(source: str) -> str:
    """Return the text of a file, or for - that of standard input. InvalidFileError."""
    with click.open_file(source, "rb") as file:
        return text_in(file.read(), "standard input" if source == "-" else source)


def excerpt(text: str, error: SpecError, name: str) -> str:
    """Return an error with the lines around it and a mark under the key."""
    place = f"{name}:{error.line}" if error.line else name
    # Many messages begin with the key already.
    named = not error.path or error.message.startswith((f"{error.path} ", f"{error.path}:"))
    where = place if named else f"{place}: {error.path}"
    parts = [f"{where}: {error.message}"]
    if error.suggestion and error.suggestion not in error.message:
        parts.append(f"  Did you mean {error.suggestion}?")
    parts += _lines_around(text.split("\n"), error)
    return "\n".join(parts)


def _lines_around(lines: list[str], error: SpecError) -> list[str]:
    if error.line is None or not 0 < error.line <= len(lines):
        return []
    first = max(1, error.line - _SHOWN_AROUND)
    shown = []
    for number in range(first, min(len(lines), error.line + _SHOWN_AROUND) + 1):
        shown.append(f"  {number:>4} | {lines[number - 1]}")
        if number == error.line:
            start, length = _span(lines[number - 1], error)
            shown.append(f"       | {' ' * start}{'^' * length}")
    return shown


def _span(line: str, error: SpecError) -> tuple[int, int]:
    """Return the begin and length of what an error is about: its columns, its key, or the line."""
    if error.column is not None:
        end = error.end_column or len(line.rstrip()) + 1
        return error.column - 1, max(1, end - error.column)
    key = error.path.rpartition(".")[2]
    if key and (start := line.find(key)) >= 0:
        return start, len(key)
    text = line.strip()
    return line.find(text), max(1, len(text))
