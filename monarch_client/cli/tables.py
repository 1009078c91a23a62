"""Tables for people: fitted to the width of a terminal, and whole in a pipe."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from monarch_client.cli.terminal import one_line, say, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STATUS_COLORS = {
    "QUEUED": "yellow",
    "PROVISIONING": "cyan",
    "SETTING_UP": "cyan",
    "RUNNING": "blue",
    "RECOVERING": "magenta",
    "STOPPING": "magenta",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "CANCELLED": "bright_black",
}
# Between columns; from which length a last column goes below its row.
_GAP, _LONG_CELL = "  ", 20
# To which lengths names and phrases are cut.
_SHORTEST_NAME, _SHORTEST_PHRASE = 12, 16
_NUMBER = re.compile(r"-|\$?[\d,]*\.?\d+( %)?")
# Amounts and times: a part of one would be another one.
_WHOLE = re.compile(r"[\d$(]")
_ELLIPSIS = "\u2026"


@dataclass(frozen=True)
class _Column:
    """A column of a table."""

    header: str
    cells: Sequence[str]

    @cached_property
    def width(self) -> int:
        """The width at which nothing is cut."""
        return max(map(len, (self.header, *self.cells)))

    @cached_property
    def least_width(self) -> int:
        """The width at which its names and phrases are cut as far as is readable."""
        return max(len(self.header), *map(_least_width, self.cells), 0)

    @cached_property
    def is_empty(self) -> bool:
        """Whether it has no value."""
        return not any(self.cells)

    @cached_property
    def is_of_numbers(self) -> bool:
        """Whether its values are numbers, which are aligned at the right."""
        values = [cell for cell in self.cells if cell]
        return bool(values) and all(_NUMBER.fullmatch(value) for value in values)


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    least: Sequence[str] = (),
    wraps: bool = False,
) -> None:
    """Print a table; on a terminal in color, and each row as one line of its width.

    A long last column goes below its row, names are shortened, and columns are left out: those of
    `least`, then the last ones. `wraps`: cells are wrapped, and no column is left out.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    columns = [
        _Column(header, [row[number] for row in cells]) for number, header in enumerate(headers)
    ]
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or _total([each.width for each in columns]) <= width:
        _print(columns, [each.width for each in columns])
    elif wraps:
        _print_wrapped(columns, width)
    else:
        _print_fitted(columns, least, width)


def shortened(text: str, width: int) -> str:
    """Return the text in `width` columns: of a name the middle is left out, else the end."""
    if len(text) <= width:
        return text
    if " " in text:
        return text[: width - 1].rstrip() + _ELLIPSIS
    tail = (width - 1) // 3
    return f"{text[: width - 1 - tail]}{_ELLIPSIS}{text[len(text) - tail :]}"


def _least_width(cell: str) -> int:
    if cell in STATUS_COLORS or _WHOLE.match(cell):
        return len(cell)
    return min(len(cell), _SHORTEST_PHRASE if " " in cell else _SHORTEST_NAME)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _print_fitted(columns: Sequence[_Column], least: Sequence[str], width: int) -> None:
    is_below = len(columns) > 1 and columns[-1].width > _LONG_CELL
    shown, left_out = _chosen(columns[:-1] if is_below else columns, least, width)
    widths = _narrowed(shown, width)
    _print(shown, widths, columns[-1].cells if is_below else (), width)
    if left_out:
        names = ", ".join(filter(None, left_out)) or "all columns"
        remark = f"No room for {names}: widen the terminal, or use -o json."
        tell(click.style(remark, dim=True))


def _chosen(
    columns: Sequence[_Column], least: Sequence[str], width: int
) -> tuple[list[_Column], list[str]]:
    """Return the columns that fit once names are cut, and the headers of others with values."""
    shown, left_out = list(columns), []
    by_header = {each.header: each for each in columns[1:]}
    order = [
        *(each for each in columns[1:] if each.is_empty),
        *(by_header[name] for name in least if name in by_header),
        *reversed(columns[1:]),
    ]
    for column in order:
        if _total([each.least_width for each in shown]) <= width:
            break
        if column in shown:
            shown.remove(column)
            if not column.is_empty:
                left_out.append(column.header)
    return shown, left_out


def _narrowed(columns: Sequence[_Column], width: int) -> list[int]:
    """Return widths that fit: the widest column that can be cut is cut first."""
    widths = [each.width for each in columns]
    while _total(widths) > width:
        spare = [
            own if own > each.least_width else 0 for own, each in zip(widths, columns, strict=True)
        ]
        if not any(spare):
            break
        widths[spare.index(max(spare))] -= 1
    return widths


def _print(
    columns: Sequence[_Column], widths: Sequence[int], below: Sequence[str] = (), width: int = 0
) -> None:
    """Print the columns, and below each row its text of the column that goes there."""
    headers, *rows = _lines(columns)
    cells = [_aligned(cell, columns, widths, number) for number, cell in enumerate(headers)]
    say(click.style(_GAP.join(cells).rstrip(), bold=True))
    for row, text in zip_longest(rows, below, fillvalue=""):
        cells = [_aligned(cell, columns, widths, number) for number, cell in enumerate(row)]
        say(_GAP.join(cells).rstrip())
        if text:
            say(textwrap.indent(textwrap.fill(text, width - len(_GAP)), _GAP))


def _aligned(text: str, columns: Sequence[_Column], widths: Sequence[int], number: int) -> str:
    """Return a cell in its width. The first column begins the line: scripts look for it there."""
    width = widths[number]
    cut = shortened(text, width)
    padded = cut.rjust(width) if number and columns[number].is_of_numbers else cut.ljust(width)
    color = STATUS_COLORS.get(text)
    return click.style(padded, fg=color) if color else padded


def _print_wrapped(columns: Sequence[_Column], width: int) -> None:
    """Print the columns, their cells wrapped to widths that fit."""
    widths = [each.width for each in columns]
    while _total(widths) > width and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    for number, row in enumerate(_lines(columns)):
        wrapped = [textwrap.wrap(cell, own) or [""] for cell, own in zip(row, widths, strict=True)]
        for line in zip_longest(*wrapped, fillvalue=""):
            text = _GAP.join(cell.ljust(own) for cell, own in zip(line, widths, strict=True))
            say(click.style(text.rstrip(), bold=True) if number == 0 else text.rstrip())


def _lines(columns: Sequence[_Column]) -> Iterator[tuple[str, ...]]:
    """Return the headers, and then the cells of each row."""
    return zip(*([each.header, *each.cells] for each in columns), strict=True)
