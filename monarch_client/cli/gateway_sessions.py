"""mportal sessions: list the programs and shells that are attached to a job, and end them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import one_line, say

_MEGABYTE = 1_000_000

COLUMNS: dict[str, Callable[[Any], str]] = {
    "ID": lambda row: str(row.id),
    "USER": lambda row: row.user,
    "KIND": lambda row: row.kind,
    "STATE": lambda row: row.state,
    "OPENED": lambda row: f"{age(row.created_at)} ago",
    "FROM": lambda row: row.source,
    "SENT MB": lambda row: f"{row.bytes_up / _MEGABYTE:.1f}",
    "RECEIVED MB": lambda row: f"{row.bytes_down / _MEGABYTE:.1f}",
    "FOR": lambda row: one_line(row.purpose),
    "REASON": lambda row: row.reason,
}


@click.command()
@job_argument
@project_option
@click.option("--all", "-a", "is_all", is_flag=True, help="List ended sessions too.")
@click.option("--end", "ended", type=click.IntRange(1), help="End the session with this ID.")
@output_options
@pass_session
def sessions(
    session: Session,
    /,
    job_id: int,
    project: str | None,
    output: Output,
    *,
    is_all: bool,
    ended: int | None,
) -> None:
    """List the programs and shells that are attached to a job."""
    slug = session.project(project)
    if ended is not None:
        session.client.end_gateway_session(slug, job_id, ended)
        say(f"Session {ended} was ended.")
        return
    found = session.client.gateway_sessions(slug, job_id)
    rows = [row for row in found if is_all or row.ended_at is None]
    if is_all:
        empty = f"No sessions: nothing has attached to job {job_id}."
    else:
        empty = "No sessions. To open a shell: mportal ssh JOB. Ended sessions: --all"
    least = ("SENT MB", "RECEIVED MB", "REASON", "FROM")
    output.rows(rows, COLUMNS, least=least, empty=empty)
