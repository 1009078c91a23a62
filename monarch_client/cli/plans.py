"""The launch plan of a job, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import dollars, duration
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import complain, one_line, say, tell
from monarch_client.cli.why import show_expected

if TYPE_CHECKING:
    from monarch_client.wire.clusters import Plan, Plans

PLAN_HEADERS = ["", "WHERE", "MACHINE", "CPUS", "MEMORY", "GPUS", "SPOT", "AN HOUR"]


def show_plan(made: Plan) -> None:
    """Print where a job could run, for how much, and when it would start."""
    if made.candidates:
        print_table(
            PLAN_HEADERS,
            [
                [
                    "->" if row.is_chosen else "",
                    row.infra,
                    row.instance_type,
                    row.cpus,
                    row.memory,
                    row.accelerators,
                    "spot" if row.use_spot else "",
                    dollars(row.usd_per_hour),
                ]
                for row in made.candidates
            ],
        )
    _show_cost(made)
    _show_defaults(made)
    for warning in made.warnings:
        tell(click.style("Warning: ", fg="yellow", bold=True) + one_line(warning))
    for reason in made.reasons:
        tell(one_line(reason))
    if made.problem:
        complain(made.problem)
    if made.start is not None:
        say(f"If submitted now, queue {made.queue}: {one_line(made.start.sentence)}")
        show_expected(made.start)


def show_plans(made: Plans) -> None:
    """Print the plan of each job that would be submitted, and what all of them cost."""
    for plan in made.results:
        say(click.style(f"{plan.name}:", bold=True))
        show_plan(plan)
        say("")
    if made.total_usd is not None:
        say(f"At most {dollars(made.total_usd)} in total, for {made.num_jobs:,} jobs.")


def _show_cost(made: Plan) -> None:
    is_array = made.num_jobs > 1
    if is_array:
        say(f"{made.summary[:1].upper()}{made.summary[1:]}.")
    if made.usd is not None and made.max_duration_s is not None:
        each = " for each job" if is_array else ""
        say(f"At most {dollars(made.usd)}{each}, for {duration(made.max_duration_s)}.")
    if is_array and made.total_usd is not None:
        say(f"At most {dollars(made.total_usd)} in total.")


def _show_defaults(made: Plan) -> None:
    if made.defaults:
        say("")
        rows = [[row.key, row.value, row.source] for row in made.defaults]
        print_table(["SET BY THE PORTAL", "VALUE", "FROM"], rows, wraps=True)
        say("")
