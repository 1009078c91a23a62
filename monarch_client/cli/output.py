"""The output of commands: a table for people, JSON or YAML for programs, or ids alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

import click

from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import acts_on_terminals, for_programs, say, tell

F = TypeVar("F", bound=Callable[..., Any])

_TENTHS_BELOW_S = 10
_BYTES_UNIT, _TENTHS_BELOW = 1024, 10
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
        self,
        rows: Sequence[Any],
        columns: Mapping[str, Callable[[Any], str]],
        *,
        key: str = "id",
        least: Sequence[str] = (),
        empty: str = "There is nothing to list.",
    ) -> None:
        """Print a list of dataclasses; `key` is the attribute that --quiet prints.

        `least`: the columns to leave out first on a narrow terminal. `empty`: the remark for
        people that replaces a table without rows, and says what to do.
        """
        if self.quiet:
            for row in rows:
                say(str(getattr(row, key)))
        elif self.form == "table" and not rows:
            tell(empty)
        elif self.form == "table":
            cells = [[show(row) for show in columns.values()] for row in rows]
            print_table(list(columns), cells, least=least)
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
