"""mportal metrics: show the metrics that a job's program reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import NOTHING_FOUND
from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, local_time, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import tell

if TYPE_CHECKING:
    from monarch_client.wire.metrics import ProgramSeries


@dataclass(frozen=True)
class _Row:
    """One point of a history."""

    rank: int
    at: datetime
    step: int
    value: float | None


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


SERIES: dict[str, Callable[[Any], str]] = {
    "NAME": lambda series: series.name,
    "NODE": lambda series: str(series.rank),
    "STEP": lambda series: str(series.step),
    "LAST": lambda series: _number(series.value),
    "LOWEST": lambda series: _number(series.lowest),
    "HIGHEST": lambda series: _number(series.highest),
    "REPORTED": lambda series: f"{age(series.at)} ago",
}
HISTORY: dict[str, Callable[[Any], str]] = {
    "NODE": lambda row: str(row.rank),
    "TIME": lambda row: local_time(row.at, seconds=True),
    "STEP": lambda row: str(row.step),
    "VALUE": lambda row: _number(row.value),
}


@click.command(
    epilog=examples(
        "mportal metrics ppo",
        "mportal metrics ppo -n loss -r 0",
    )
)
@job_argument
@project_option
@click.option("--attempt", "-a", type=click.IntRange(1), help="The attempt; by default the newest.")
@click.option("--name", "-n", default="", help="Show the history of this metric.")
@click.option("--node", "--rank", "-r", "rank", type=click.IntRange(0), help="Only this node.")
@output_options
@pass_session
def metrics(
    session: Session,
    /,
    job_id: int,
    project: str | None,
    *,
    output: Output,
    **choice: Any,
) -> None:
    """Show the metrics that a job's program reports.

    Of each name and rank: the last value, the lowest and the highest. Exits with 1 if there are
    none.
    """
    slug, context = session.project(project), click.get_current_context()
    found = session.client.program_metrics(slug, job_id, **choice)
    if not found.series:
        tell("The program has reported no such metric.")
        context.exit(NOTHING_FOUND)
    if choice["name"]:
        output.rows(list(_history(found.series)), HISTORY, key="step")
    else:
        output.rows(found.series, SERIES, key="name")
    if found.is_full:
        tell("No more metrics of this attempt can be kept: some names or nodes are left out.")


def _history(found: list[ProgramSeries]) -> Iterator[_Row]:
    for series in found:
        for t, step, value in zip(series.t, series.steps, series.values, strict=True):
            yield _Row(series.rank, datetime.fromtimestamp(t, timezone.utc), step, value)
