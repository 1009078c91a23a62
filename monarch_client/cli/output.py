"""The output of commands: a table for people, JSON or YAML for programs, or ids alone."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

import click

from monarch_client.cli.terminal import acts_on_terminals, for_programs, one_line, say

F = TypeVar("F", bound=Callable[..., Any])

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
_TENTHS_BELOW_S = 10
_BYTES_UNIT, _TENTHS_BELOW = 1024, 10
# Between columns; from which length a last column goes below its row; to which names are cut.
_GAP, _LONG_CELL, _SHORTEST_CUT = "  ", 20, 12
_CENT = Decimal("0.01")
_UNITS = ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h"))


@dataclass(frozen=True)
class Output:
    """The output format of a command."""

    form: str = "table"
    quiet: bool = False

    @property
    def is_for_people(self) -> bool:
        """Whether it is a table, and not output for programs."""
        return self.form == "table" and not self.quiet

    def rows(
        self, rows: Sequence[Any], columns: Mapping[str, Callable[[Any], str]], *, key: str = "id"
    ) -> None:
        """Print a list of dataclasses; `key` is the attribute that --quiet prints."""
        if self.quiet:
            for row in rows:
                say(str(getattr(row, key)))
        elif self.form == "table":
            print_table(list(columns), [[show(row) for show in columns.values()] for row in rows])
        else:
            self._dump([asdict(row) for row in rows])

    def one(self, row: Any, show: Callable[[], None], *, key: str = "id") -> None:
        """Print one dataclass; `show` prints it for people."""
        if self.quiet:
            say(str(getattr(row, key)))
        elif self.form == "table":
            show()
        else:
            self._dump(asdict(row))

    def _dump(self, value: Any) -> None:
        text = json.dumps(value, default=_plain, indent=2, ensure_ascii=False)
        if self.form == "json":
            say(for_programs(text))
        else:
            import yaml  # noqa: PLC0415 - 30 ms that few commands need

            as_it_is = not acts_on_terminals(text)
            plain = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=as_it_is)
            say(plain.rstrip())


def output_options(command: F) -> F:
    """Give a command -o and -q, as one argument `output`."""

    def collect(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        now = context.params.get("output") or Output()
        form, quiet = (value, now.quiet) if parameter.name == "form" else (now.form, value)
        context.params["output"] = Output(form, quiet)

    form = click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="Output format.",
        expose_value=False,
        callback=collect,
    )
    quiet = click.option(
        "-q", "--quiet", is_flag=True, help="Print ids only.", expose_value=False, callback=collect
    )
    return form(quiet(command))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: in color and fitted on a terminal, in plain columns in a pipe."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_fitted(headers, rows)
        return
    widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    for row in [headers, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def _print_fitted(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns within the width of the terminal.

    Where they do not fit, a long last column goes below its row and the widest other one is cut;
    if that is not enough, cells are wrapped.
    """
    width = shutil.get_terminal_size().columns
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    is_below = _total(widths) > width and widths[-1] > _LONG_CELL
    shown = widths[:-1] if is_below else widths
    while is_below and _total(shown) > width and max(shown) > _SHORTEST_CUT:
        shown[shown.index(max(shown))] -= 1
    if _total(shown) > width:
        _print_wrapped(headers, rows)
        return
    say(click.style(_columns(headers, shown), bold=True))
    for row in rows:
        say(_columns(row, shown, STATUS_COLORS))
        if is_below and row[-1]:
            say(textwrap.indent(textwrap.fill(row[-1], width - len(_GAP)), _GAP))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _print_wrapped(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Imported here: it takes 50 ms, and most tables fit.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, column in zip(headers, zip(*rows, strict=True), strict=True):
        # Half a status is none.
        statuses = [len(cell) for cell in column if cell in STATUS_COLORS]
        table.add_column(header, min_width=max(statuses, default=None))
    for row in rows:
        table.add_row(*(Text(cell, STATUS_COLORS.get(cell, "")) for cell in row))
    Console().print(table)


def _columns(
    cells: Sequence[str], widths: Sequence[int], colors: Mapping[str, str] | None = None
) -> str:
    """Return the first cells in columns; one that is too long is cut."""
    shown = []
    for cell, width in zip(cells, widths, strict=False):
        text = cell if len(cell) <= width else cell[: width - 1] + "\u2026"
        color = (colors or {}).get(cell)
        shown.append(click.style(text.ljust(width), fg=color) if color else text.ljust(width))
    return _GAP.join(shown).rstrip()


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Return the time since `moment` in its largest unit."""
    if moment is None:
        return ""
    return duration((now or datetime.now(timezone.utc)) - moment)


def local_time(moment: datetime, *, seconds: bool = False) -> str:
    """Return a moment in the time zone of this machine: 2026-03-01 14:03 CET."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M{':%S' if seconds else ''} %Z}"


def local_day(moment: datetime) -> str:
    """Return a moment's day in the time zone of this machine: 2026-03-01."""
    return f"{moment.astimezone():%Y-%m-%d}"


def amount(count: float) -> str:
    """Return bytes in a readable unit: 980 B, 1.5 GiB, 80 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < _BYTES_UNIT:
            return (
                f"{count:.1f} {unit}"
                if unit != "B" and count < _TENTHS_BELOW
                else f"{count:.0f} {unit}"
            )
        count /= _BYTES_UNIT
    return f"{count:.1f} TiB"


def dollars(usd: Decimal | None) -> str:
    """Return an amount for people: $1,234.50, $0.0042, $0; empty if unknown."""
    if usd is None:
        return ""
    if not usd:
        return "$0"
    return f"${usd:,.2f}" if usd >= _CENT else f"${usd:.4f}"


def duration(span: timedelta | float) -> str:
    """Return a span for people: 0.4 s, 12 s, 3 min, 5 h, 2 d."""
    seconds = span if isinstance(span, int | float) else span.total_seconds()
    seconds = max(0.0, seconds)
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    for below_s, unit_s, word in _UNITS:
        if seconds < below_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{seconds / 86400:.0f} d"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
