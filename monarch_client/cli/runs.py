"""Commands that look at runs: the history of one name, and the comparison of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from monarch_client.cli import completion
from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import NOTHING_FOUND
from monarch_client.cli.jobs import gpu_use_text
from monarch_client.cli.options import job_numbers, project_option
from monarch_client.cli.output import Output, age, dollars, duration, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import UnknownNameError

if TYPE_CHECKING:
    from monarch_client.wire.runs import Comparison, HistoryRun, Run

# Columns of metrics, unless they are named.
_MOST_METRICS = 3
_FEWEST_COMPARED = 2
_MOST_RUNS = 200


def _span(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _reason(run: Run) -> str:
    return "" if run.job.status == "SUCCEEDED" else run.job.wait_reason or run.job.stop_reason


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


def _last(run: Run, metric: str) -> str:
    found = [each for each in run.metrics if each.name == metric]
    return _number(found[0].value) if found else ""


HISTORY: dict[str, Callable[[HistoryRun], str]] = {
    "RUN": lambda run: str(run.number or ""),
    "JOB": lambda run: str(run.job.id),
    "STATUS": lambda run: run.job.status,
    "REASON": _reason,
    "AGE": lambda run: age(run.job.created_at),
    "WAITED": lambda run: _span(run.wait_s),
    "DURATION": lambda run: _span(run.duration_s),
    "COST": lambda run: dollars(run.job.usd),
    "NODES": lambda run: run.job.machines,
    "CODE": lambda run: run.code,
}
FACTS: dict[str, Callable[[Run], str]] = {
    "Name": lambda run: run.job.name,
    "Project": lambda run: run.job.project,
    "Status": lambda run: run.job.status,
    "Reason": _reason,
    "Exit code": lambda run: "" if run.job.exit_code is None else str(run.job.exit_code),
    "Submitted": lambda run: f"{age(run.job.created_at)} ago by {run.job.submitted_by}",
    "Waited": lambda run: _span(run.wait_s),
    "Duration": lambda run: _span(run.duration_s),
    "Cost": lambda run: dollars(run.job.usd),
    "Nodes": lambda run: run.job.machines,
    "GPU use": lambda run: gpu_use_text(run.job.gpu_use),
    "Attempts": lambda run: str(run.job.attempt_count),
    "Code": lambda run: run.code,
}


def _metric_names(runs: list[HistoryRun] | list[Run], chosen: tuple[str, ...]) -> list[str]:
    """Return the chosen metrics; else all that the runs reported.

    UnknownNameError: none reported a chosen one.
    """
    names = sorted({metric.name for run in runs for metric in run.metrics})
    unknown = ", ".join(name for name in chosen if name not in names)
    if unknown:
        known = f"They reported: {', '.join(names)}." if names else "They reported none."
        raise UnknownNameError(f"These {len(runs)} runs reported no metric {unknown}. {known}")
    return list(chosen) or names


metric_option = click.option(
    "--metric", "-m", "metrics", multiple=True, help="Show the last value of this metric."
)


@click.command(
    epilog=examples(
        "mportal history ppo",
        "mportal history ppo -m loss -m reward -n 50",
    )
)
@click.argument("name", shell_complete=completion.job_names)
@project_option
@metric_option
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, _MOST_RUNS),
    default=20,
    show_default=True,
    help="How many of the newest runs to list; metrics are looked for in these.",
)
@output_options
@pass_session
def history(
    session: Session,
    /,
    name: str,
    project: str | None,
    metrics: tuple[str, ...],
    limit: int,
    output: Output,
) -> None:
    """List the runs of one name, newest first.

    A run is a job of this name: its times, cost, code and metrics.
    """
    page = session.client.history(session.project(project), name, limit=limit)
    found = page.results
    if not found:
        tell(f"There is no job named {name}.")
        click.get_current_context().exit(NOTHING_FOUND)
    if output.quiet:
        for run in found:
            say(str(run.job.id))
        return
    columns = dict(HISTORY)
    names = _metric_names(found, metrics)
    for metric in names if metrics else names[:_MOST_METRICS]:
        # A metric may have the name of a column.
        title = f"metric {metric}" if metric in HISTORY else metric
        columns[title] = lambda run, metric=metric: _last(run, metric)  # type: ignore[misc]
    filled = {title: show for title, show in columns.items() if any(show(run) for run in found)}
    output.rows(found, filled, least=("CODE", "WAITED", "NODES", "REASON", "COST"))
    if page.next:
        tell(f"These are the newest {len(found)} runs. Use -n for more, at most {_MOST_RUNS}.")


@click.command(
    epilog=examples(
        "mportal compare 42 43",
        "mportal compare 42 43 44 -m loss --diff",
    )
)
@click.argument(
    "names",
    nargs=-1,
    required=True,
    metavar="JOB JOB...",
    shell_complete=completion.jobs,
)
@metric_option
@click.option("--diff", is_flag=True, help="Print the changed lines of the specifications.")
@output_options
@pass_session
def compare(
    session: Session,
    /,
    names: tuple[str, ...],
    metrics: tuple[str, ...],
    output: Output,
    *,
    diff: bool,
) -> None:
    """Compare two to six jobs.

    It lists times, cost, metrics, and the fields of the specifications that differ.
    """
    from monarch_client.wire.runs import MOST_COMPARED  # noqa: PLC0415 - 30 ms

    numbers = list(dict.fromkeys(job_numbers(session, None, [name])[1][0] for name in names))
    if not _FEWEST_COMPARED <= len(numbers) <= MOST_COMPARED:
        raise click.UsageError(f"Name two to {MOST_COMPARED} different jobs.")
    found = session.client.compare(numbers)
    if output.quiet:
        for run in found.runs:
            say(str(run.job.id))
        return
    shown = _metric_names(found.runs, metrics)
    output.one(found, lambda: _show(found, shown, diff=diff))


def _show(found: Comparison, names: list[str], *, diff: bool) -> None:
    headers = ["", *(f"JOB {run.job.id}" for run in found.runs)]
    rows = [[title, *map(show, found.runs)] for title, show in FACTS.items()]
    rows += [[name, *(_last(run, name) for run in found.runs)] for name in names]
    rows += [
        [each.path, *("" if value is None else value for value in each.values)]
        for each in found.fields
    ]
    print_table(headers, [row for row in rows if any(row[1:])], wraps=True)
    for changes in found.changes if diff else []:
        say(f"\nFrom job {found.runs[0].job.id} to job {changes.job}:")
        if changes.lines is None:
            say("The specifications are too long to compare.")
        for line in changes.lines or []:
            say(line)
