"""Commands that change jobs: cancel, hold, release, prioritize, extend, rerun, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import PORTAL_TROUBLE, exit_code_of_error, exit_code_of_refusal
from monarch_client.cli.options import (
    drop_deleted_option,
    job_argument,
    jobs_argument,
    project_option,
)
from monarch_client.cli.output import Output, local_time, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, say, tell
from monarch_client.errors import MissingError, RefusedError
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.wire.consequences import Asked, consequences_of

if TYPE_CHECKING:
    from monarch_client.wire.bulk import JobOutcome

RERUN_COLUMNS: dict[str, Callable[[JobOutcome], str]] = {
    "JOB": lambda outcome: str(outcome.job),
    "NEW JOB": lambda outcome: str(outcome.new_job),
    "NAME": lambda outcome: outcome.name,
}
# Each is one request.
MOST_EXPLAINED = 20
K = TypeVar("K")
T = TypeVar("T")


@click.command()
@jobs_argument
@project_option
@pass_session
def cancel(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Cancel jobs. Queued ones end at once, others are stopped."""
    act(session, project, "cancel", job_ids)


@click.command()
@jobs_argument
@project_option
@pass_session
def hold(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Keep queued jobs from starting until they are released. They keep their position."""
    act(session, project, "hold", job_ids)


@click.command()
@jobs_argument
@project_option
@pass_session
def release(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Release held jobs."""
    act(session, project, "release", job_ids)


@click.command(
    epilog=examples(
        "mportal prioritize 42 43 80",
    )
)
@jobs_argument
@click.argument("priority", type=click.IntRange(LOWEST_PRIORITY, HIGHEST_PRIORITY))
@project_option
@pass_session
def prioritize(
    session: Session, job_ids: tuple[int, ...], priority: int, project: str | None
) -> None:
    """Change the PRIORITY of queued jobs.

    It is a number from 0 to 100; higher comes first.
    """
    act(session, project, "prioritize", job_ids, priority=priority)


@click.command(
    epilog=examples(
        "mportal extend 42 2h",
    )
)
@job_argument
@click.argument("duration")
@project_option
@pass_session
def extend(session: Session, job_id: int, duration: str, project: str | None) -> None:
    """Add DURATION, such as 2h or 90m, to a job's max_duration."""
    job = session.client.extend(session.project(project), job_id, duration)
    until = "" if job.stops_at is None else f", until {local_time(job.stops_at)}"
    say(f"Job {job.id}: may run for {timedelta(seconds=job.max_duration_s or 0)}{until}")


@click.command(
    epilog=examples(
        "mportal rerun 42 -F",
        "mportal rerun 42 43 --drop-deleted",
    )
)
@jobs_argument
@project_option
@click.option(
    "--follow/--detach",
    "-F/-d",
    "-f",
    default=False,
    help="Follow the new job to its end.",
)
@drop_deleted_option
@output_options
@pass_session
def rerun(
    session: Session,
    job_ids: tuple[int, ...],
    project: str | None,
    output: Output,
    *,
    follow: bool,
    drop_deleted: bool,
) -> None:
    """Submit the specifications of jobs again as new jobs."""
    if len(job_ids) > 1:
        if follow:
            raise click.UsageError("--follow takes one job.")
        outcomes = session.client.act_on_jobs(
            session.project(project), "rerun", job_ids, drop_deleted=drop_deleted
        )
        output.rows([each for each in outcomes if each.new_job], RERUN_COLUMNS, key="new_job")
        exit_if_refused(outcomes)
        return
    slug = session.project(project)
    job = session.client.rerun(slug, job_ids[0], drop_deleted=drop_deleted)
    output.one(job, lambda: say(f"Job {job.id} ({job.name}): {job.url}"))
    if follow:
        from monarch_client.cli.follow import JobView  # noqa: PLC0415 - HTTP takes 60 ms

        click.get_current_context().exit(JobView(session.client, job).follow())


@click.command()
@jobs_argument
@project_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def delete(session: Session, job_ids: tuple[int, ...], project: str | None, *, yes: bool) -> None:
    """Delete ended jobs with their logs permanently."""
    if not yes:
        _explain(session, project, Asked.DELETE, job_ids)
        names = ", ".join(map(str, job_ids))
        click.confirm(f"Delete job {names}?", abort=True, err=True)
    act(session, project, "delete", job_ids)


def _explain(session: Session, project: str | None, action: Asked, job_ids: Sequence[int]) -> None:
    """Print what the action does to the jobs, of the first of many."""
    slug, jobs = session.project(project), []
    for number in job_ids[:MOST_EXPLAINED]:
        with suppress(MissingError):  # the action reports it
            jobs.append(session.client.job(slug, number))
    for text in consequences_of(action, jobs):
        tell(text)
    if (more := len(job_ids) - MOST_EXPLAINED) > 0:
        tell(f"{more} more jobs are not shown.")


def act(
    session: Session, project: str | None, action: str, job_ids: Sequence[int], **options: Any
) -> None:
    """Apply `action` to the jobs and print the outcome of each. Exits if any was refused."""
    outcomes = session.client.act_on_jobs(session.project(project), action, job_ids, **options)
    for outcome in outcomes:
        if not outcome.is_refused:
            say(f"Job {outcome.job}: {outcome.message}")
    exit_if_refused(outcomes)


def exit_if_refused(outcomes: Sequence[JobOutcome]) -> None:
    """Print why jobs were refused, and exit if any was."""
    refused = [outcome for outcome in outcomes if outcome.is_refused]
    for outcome in refused:
        complain(outcome.message)
    if refused:
        codes = [exit_code_of_refusal(outcome.code) for outcome in refused]
        # Where others were changed, it is not the command line as a whole that is wrong.
        is_all = len(refused) == len(outcomes)
        click.get_current_context().exit(max(codes) if is_all else PORTAL_TROUBLE)


def each_of(items: Iterable[K], act: Callable[[K], T]) -> Iterator[T]:
    """Yield the result of `act` for each item. A refused item does not stop the others."""
    refusals: list[RefusedError] = []
    for item in items:
        with _complaining() as refused:
            yield act(item)
        refusals += refused
    if refusals:
        click.get_current_context().exit(max(map(exit_code_of_error, refusals)))


@contextmanager
def _complaining() -> Iterator[list[RefusedError]]:
    """Say what the portal refuses, and keep it."""
    refused: list[RefusedError] = []
    try:
        yield refused
    except RefusedError as error:
        complain(error.message)
        refused.append(error)
