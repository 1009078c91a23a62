"""Commands that change jobs: cancel, hold, release, prioritize, extend, rerun, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import click

from monarch_client.cli.exit_codes import PORTAL_TROUBLE
from monarch_client.cli.follow import JobView
from monarch_client.cli.jobs import (
    drop_deleted_option,
    job_argument,
    jobs_argument,
    project_option,
)
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, say
from monarch_client.errors import RefusedError
from monarch_client.spec.portal_keys import HIGHEST_PRIORITY, LOWEST_PRIORITY

K = TypeVar("K")
T = TypeVar("T")


@click.command()
@jobs_argument
@project_option
@pass_session
def cancel(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Cancel jobs. Queued ones end at once, others are stopped."""
    slug = session.project(project)
    for job in each_of(job_ids, lambda job_id: session.client.cancel(slug, job_id)):
        say(f"Job {job.id}: {job.status_label}")


@click.command()
@jobs_argument
@project_option
@pass_session
def hold(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Keep queued jobs from starting until they are released. They keep their position."""
    slug = session.project(project)
    for job in each_of(job_ids, lambda job_id: session.client.hold(slug, job_id)):
        say(f"Job {job.id}: {job.wait_message}")


@click.command()
@jobs_argument
@project_option
@pass_session
def release(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """Release held jobs."""
    slug = session.project(project)
    for job in each_of(job_ids, lambda job_id: session.client.release(slug, job_id)):
        say(f"Job {job.id}: {job.status_label}, not held")


@click.command()
@jobs_argument
@click.argument("priority", type=click.IntRange(LOWEST_PRIORITY, HIGHEST_PRIORITY))
@project_option
@pass_session
def prioritize(
    session: Session, job_ids: tuple[int, ...], priority: int, project: str | None
) -> None:
    """Change the PRIORITY of queued jobs, 0 to 100; higher comes first."""
    slug = session.project(project)
    for job in each_of(job_ids, lambda job_id: session.client.prioritize(slug, job_id, priority)):
        say(f"Job {job.id}: {job.status_label}, priority {job.priority}")


@click.command()
@job_argument
@click.argument("duration")
@project_option
@pass_session
def extend(session: Session, job_id: int, duration: str, project: str | None) -> None:
    """Add DURATION, such as 2h or 90m, to a job's max_duration."""
    job = session.client.extend(session.project(project), job_id, duration)
    until = "" if job.stops_at is None else f", until {job.stops_at:%Y-%m-%d %H:%M} UTC"
    say(f"Job {job.id}: may run for {timedelta(seconds=job.max_duration_s or 0)}{until}")


@click.command()
@job_argument
@project_option
@click.option("--follow/--detach", "-f/-d", default=False, help="Show the log until it ends.")
@drop_deleted_option
@output_options
@pass_session
def rerun(
    session: Session,
    job_id: int,
    project: str | None,
    output: Output,
    *,
    follow: bool,
    drop_deleted: bool,
) -> None:
    """Submit a job's specification again as a new job."""
    slug = session.project(project)
    job = session.client.rerun(slug, job_id, drop_deleted=drop_deleted)
    output.one(job, lambda: say(f"Job {job.id} ({job.name}): {job.url}"))
    if follow:
        click.get_current_context().exit(JobView(session.client, job).follow())


@click.command()
@jobs_argument
@project_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def delete(session: Session, job_ids: tuple[int, ...], project: str | None, *, yes: bool) -> None:
    """Delete ended jobs with their logs permanently."""
    slug = session.project(project)
    if not yes:
        names = ", ".join(map(str, job_ids))
        click.confirm(f"Remove job {names} with log and history?", abort=True, err=True)

    def remove(job_id: int) -> int:
        session.client.delete(slug, job_id)
        return job_id

    for job_id in each_of(job_ids, remove):
        say(f"Job {job_id}: removed")


def each_of(items: Iterable[K], act: Callable[[K], T]) -> Iterator[T]:
    """Yield the result of `act` for each item. A refused item does not stop the others."""
    refusals = 0
    for item in items:
        with _complaining() as refused:
            yield act(item)
        refusals += len(refused)
    if refusals:
        click.get_current_context().exit(PORTAL_TROUBLE)


@contextmanager
def _complaining() -> Iterator[list[RefusedError]]:
    """Say what the portal refuses, and keep it."""
    refused: list[RefusedError] = []
    try:
        yield refused
    except RefusedError as error:
        complain(error.message)
        refused.append(error)
