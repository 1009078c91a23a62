"""`mportal array`: several jobs that were submitted as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.jobs import COLUMNS
from monarch_client.cli.options import drop_deleted_option, project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import say

if TYPE_CHECKING:
    from monarch_client.wire.jobs import Array, Job

_array = click.argument("array_id", type=int, metavar="ARRAY")


@click.group()
def array() -> None:
    """Show, cancel and rerun job arrays."""


def _values(job: Job) -> str:
    return " ".join(f"{name}={value}" for name, value in job.array_values.items())


_COLUMNS: dict[str, Any] = {
    "INDEX": lambda job: str(job.array_index),
    "VALUES": _values,
    "ID": COLUMNS["ID"],
    "STATUS": COLUMNS["STATUS"],
    "WHY": COLUMNS["WHY"],
}


@array.command()
@_array
@project_option
@output_options
@pass_session
def get(session: Session, array_id: int, project: str | None, output: Output) -> None:
    """Show an array: its jobs and their counts by status."""
    found = session.client.array(session.project(project), array_id)

    def show() -> None:
        say(array_summary(found))
        say(found.url)
        say("")
        rows = [[show(job) for show in _COLUMNS.values()] for job in found.jobs]
        print_table(list(_COLUMNS), rows)

    output.one(found, show)


@array.command()
@_array
@project_option
@pass_session
def cancel(session: Session, array_id: int, project: str | None) -> None:
    """Cancel all jobs of an array that have not ended."""
    say(array_summary(session.client.cancel_array(session.project(project), array_id)))


@array.command(name="rerun-failed")
@_array
@project_option
@drop_deleted_option
@pass_session
def rerun_failed(
    session: Session, array_id: int, project: str | None, *, drop_deleted: bool
) -> None:
    """Rerun the failed and cancelled jobs of an array, in their positions."""
    slug = session.project(project)
    say(array_summary(session.client.rerun_failed(slug, array_id, drop_deleted=drop_deleted)))


def array_summary(found: Array) -> str:
    """Return an array in one line."""
    shares = [f"{count} {status}" for status, count in found.counts.items()]
    counts = ", ".join([*shares, *([f"{found.deleted} deleted"] if found.deleted else [])])
    limit = f", {found.max_parallel} at once" if found.max_parallel else ""
    return f"Array {found.id} ({found.name}), {found.size} jobs{limit}: {counts or 'none left'}"
