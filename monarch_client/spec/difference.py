"""Differences of job specifications: changed lines of two, differing values of several. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Finding differences can take the square of the lines.
_MOST_LINES, _MOST_CHARACTERS = 2_000, 64 * 1024
MOST_FIELDS = 100
LONGEST_VALUE = 200


def changed_lines(before: str, after: str) -> list[str] | None:
    """Return the changed lines with one around them, as a unified diff without its file names.

    None: a text is too long to compare.
    """
    for text in (before, after):
        if len(text) > _MOST_CHARACTERS or text.count("\n") > _MOST_LINES:
            return None
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    # The first two name the files.
    return [*lines][2:]


def differing_values(
    specs: Sequence[Mapping[str, Any]],
) -> list[tuple[str, list[str | None]]]:
    """Return the fields whose values differ, each as its dotted path and the value in each spec.

    None: the specification lacks the field. Long values are cut, and at most MOST_FIELDS returned.
    """
    fields = [dict(_fields_of(spec)) for spec in specs]
    paths = sorted({path for each in fields for path in each})
    rows = [(path, [each.get(path) for each in fields]) for path in paths]
    differing = [(path, values) for path, values in rows if len(set(values)) > 1]
    return [(path, [_cut(value) for value in values]) for path, values in differing[:MOST_FIELDS]]


def _fields_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and text of each value below `value`; an empty mapping has none."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _fields_of(each, f"{path}.{name}" if path else str(name))
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(value: str | None) -> str | None:
    is_long = value is not None and len(value) > LONGEST_VALUE
    return f"{value[:LONGEST_VALUE]}…" if value is not None and is_long else value
