"""Commands about money: the budget of a project, and what it has used."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, dollars, local_time, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import say

if TYPE_CHECKING:
    from monarch_client.wire.money import Budget, Usage

NONE = "none"
ON_SPENT = {
    "warn": "only a warning",
    "hold": "no further job starts",
    "stop": "what runs is stopped, and no further job starts",
}
HEADERS = {"user": "WHO", "job": "JOB", "day": "DAY"}


@click.group()
def budget() -> None:
    """Manage the monthly budget of a project."""


@budget.command("get")
@project_option
@output_options
@pass_session
def budget_get(session: Session, *, project: str | None, output: Output) -> None:
    """Show a project's budget and its spending this month."""
    found = session.client.budget(session.project(project))
    output.one(found, lambda: _show_budget(found), key="spent_usd")


@budget.command("set")
@click.argument("amount", metavar="USD|none")
@click.option(
    "--on-spent",
    type=click.Choice(list(ON_SPENT)),
    help="When it is spent: warn, start no further job (default), or stop running jobs.",
)
@click.option(
    "--warn-at",
    type=click.IntRange(1, 1000),
    multiple=True,
    metavar="PERCENT",
    help="Warn at this percentage. Repeatable. Default: 50, 80, 100.",
)
@project_option
@output_options
@pass_session
def budget_set(
    session: Session,
    *,
    amount: str,
    on_spent: str | None,
    warn_at: tuple[int, ...],
    project: str | None,
    output: Output,
) -> None:
    """Set a project's monthly budget in US$; `none` removes it.

    For administrators of the installation. It applies at once. Options that you leave out keep
    their values.
    """
    usd = None if amount.lower() == NONE else _amount(amount)
    changed = session.client.set_budget(
        session.project(project), usd, on_spent=on_spent, warn_at=warn_at or None
    )
    output.one(changed, lambda: _show_budget(changed), key="spent_usd")


@click.command(
    epilog=examples(
        "mportal usage --by job",
        "mportal usage --by day --from 2026-11-01 --to 2026-11-15",
    )
)
@click.option(
    "--by",
    type=click.Choice(list(HEADERS)),
    default="user",
    show_default=True,
    help="What each row is.",
)
@click.option("--from", "first_day", default="", metavar="DAY", help="Such as 2026-11-01.")
@click.option("--to", "last_day", default="", metavar="DAY", help="Default: today.")
@project_option
@output_options
@pass_session
def usage(
    session: Session,
    *,
    by: str,
    first_day: str,
    last_day: str,
    project: str | None,
    output: Output,
) -> None:
    """Show the usage of a project: US$, node hours, GPU hours. Days are in UTC.

    By default: this month.
    """
    slug = session.project(project)
    found = session.client.usage(slug, by=by, first_day=first_day, last_day=last_day)
    output.one(found, lambda: _show_usage(found), key="usd")


def _amount(text: str) -> str:
    try:
        usd = Decimal(text.removeprefix("$").replace(",", ""))
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or usd <= 0:
        raise click.BadParameter(f"{text!r} is not an amount in US$ above 0, such as 250, or none.")
    return str(usd)


def _show_budget(found: Budget) -> None:
    spent = dollars(found.spent_usd)
    if found.usd is None:
        say(f"{found.project}: no budget; {spent} spent in {found.month}")
        return
    say(f"{found.project}: {spent} of {dollars(found.usd)} spent in {found.month}")
    say(f"When it is used up: {ON_SPENT.get(found.on_spent, found.on_spent)}")
    say(f"Warnings at: {', '.join(f'{each} %' for each in found.warn_at)}")
    if found.holds:
        say(found.sentence)
    for notice in found.notices:
        say(f"  {notice.threshold} % on {local_time(notice.at)}, at {dollars(notice.usd)}")


def _show_usage(found: Usage) -> None:
    rows = [
        [
            _named(found.by, row.key, row.name),
            dollars(row.usd),
            *_hours(row.node_hours, row.gpu_hours),
        ]
        for row in found.rows
    ]
    total = ["Total", dollars(found.usd), *_hours(found.node_hours, found.gpu_hours)]
    headers = [HEADERS.get(found.by, "WHAT"), "US$", "NODE HOURS", "GPU HOURS"]
    print_table(headers, [*rows, total])


def _named(by: str, key: str, name: str) -> str:
    if by == "job" and key.isdecimal():
        return f"{key} {name}"
    return name or key


def _hours(nodes: float, gpus: float | None) -> list[str]:
    return [f"{nodes:,.1f}", "?" if gpus is None else f"{gpus:,.1f}"]
