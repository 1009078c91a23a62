"""mportal why: why a job waits, who is ahead, who has what it needs, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, duration, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say

if TYPE_CHECKING:
    from monarch_client.wire.queue import Forecast, NamedJob, Waiting

_BASIS = {
    "bounds": "at the latest, if no job runs longer than its max_duration",
    "past_runs": "probably, if jobs last as long as such jobs did before",
}


@click.command()
@job_argument
@project_option
@output_options
@pass_session
def why(session: Session, /, job_id: int, project: str | None, *, output: Output) -> None:
    """Show why a job waits."""
    found = session.client.why(session.project(project), job_id)
    output.one(found, lambda: _show(found), key="code")


def _show(found: Waiting) -> None:
    say(one_line(found.sentence))
    if found.position is not None:
        say(f"It waits for {age(found.since)} now.")
    if found.next_try_at is not None:
        say(f"It is tried again {_when(found.next_try_at)}.")
    show_expected(found)
    _show_jobs("Who has it:", found.holders)
    _show_jobs("Ahead of it:", found.ahead)


def show_expected(found: Forecast) -> None:
    """Print the position in the queue and the expected start."""
    if found.position is not None:
        say(f"Position {found.position} of {found.of} in the queue.")
    if found.expected_at is not None:
        say(f"It starts {_when(found.expected_at)}, {_BASIS.get(found.basis, found.basis)}.")
        if found.latest_at is not None:
            say(f"It starts {_when(found.latest_at)} {_BASIS['bounds']}.")
    elif found.no_estimate:
        say(one_line(found.no_estimate))


def _show_jobs(title: str, jobs: Sequence[NamedJob]) -> None:
    if jobs:
        say("")
        say(title)
        headers = ["JOB", "NAME", "PROJECT", "OWNER", "STATUS"]
        print_table([*headers, *(["HAS"] if jobs[0].has else [])], [_words(job) for job in jobs])


def _words(job: NamedJob) -> list[str]:
    has = [job.has] if job.has else []
    if job.job_id is None:
        return ["-", "(of another project)", "", "", "", *has]
    return [str(job.job_id), job.name, job.project, job.owner, job.status, *has]


def _when(moment: datetime) -> str:
    left = moment - datetime.now(timezone.utc)
    return "now" if left.total_seconds() < 1 else f"in {duration(left)}"
