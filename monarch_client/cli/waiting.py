"""`mportal wait`: wait for the end of jobs without their logs."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import DETACHED, TIMED_OUT, exit_code_of
from monarch_client.cli.options import jobs_argument, project_option
from monarch_client.cli.progress import Progress
from monarch_client.cli.session import Session, pass_session
from monarch_client.errors import UnreachableError

if TYPE_CHECKING:
    from monarch_client import rest

WAIT_POLL_S = 1.0


@click.command(
    name="wait",
    epilog=examples(
        "mportal wait 42 43",
        "mportal wait ppo --timeout 600 && mportal logs ppo",
    ),
)
@jobs_argument
@project_option
@click.option("--timeout", "timeout_s", type=float, help="Give up after this many seconds (124).")
@pass_session
@click.pass_context
def wait_command(
    context: click.Context,
    session: Session,
    job_ids: tuple[int, ...],
    project: str | None,
    timeout_s: float | None,
) -> None:
    """Wait until jobs have ended.

    The exit code is that of the first job that did not succeed, else 0.
    """
    slug = session.project(project)
    codes = [wait(session.client, slug, job_id, timeout_s) for job_id in job_ids]
    context.exit(next((code for code in codes if code), 0))


def wait(client: rest.PortalClient, project: str, job_id: int, timeout_s: float | None) -> int:
    """Wait silently until the job has ended; return the exit code for the command.

    Then, or when the time is up, say how the job is. A portal that goes away meanwhile is waited
    for as well; one that cannot be reached at all is an error.
    """
    give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
    progress = Progress()
    job = client.job(project, job_id)
    try:
        while not job.is_final:
            if give_up_at is not None and time.monotonic() >= give_up_at:
                progress.goes_on(job)
                return TIMED_OUT
            client.connection.sleep(WAIT_POLL_S)
            # That it does not answer was reported by then.
            with suppress(UnreachableError):
                job = client.job(project, job_id)
    except KeyboardInterrupt:
        progress.detached(job)
        return DETACHED
    progress.ended(job)
    return exit_code_of(job)
