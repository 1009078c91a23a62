"""Commands on jobs that exist: ps, get, wait, cancel, rerun, delete."""

from __future__ import annotations

from typing import Any, TypeVar

import click

from monarch_client.cli.follow import JobView, wait
from monarch_client.cli.output import Output, age, duration, output_options, print_table
from monarch_client.cli.session import Session, pass_session
from monarch_client.rest.models import Attempt, Job

F = TypeVar("F")

project_option = click.option("--project", "-p", help="Default: MPORTAL_PROJECT, or your only one.")
job_argument = click.argument("job_id", type=int, metavar="JOB")
jobs_argument = click.argument("job_ids", type=int, nargs=-1, required=True, metavar="JOB...")


def _why(job: Job) -> str:
    return "" if job.status == "SUCCEEDED" else job.wait_message or job.stop_reason


COLUMNS = {
    "ID": lambda job: str(job.id),
    "NAME": lambda job: job.name,
    "STATUS": lambda job: job.status,
    "NODES": lambda job: str(job.num_nodes),
    "USER": lambda job: job.submitted_by,
    "AGE": lambda job: age(job.created_at),
    "WHY": _why,
}


@click.command()
@project_option
@click.option("--status", "-s", default="", help="Such as RUNNING,QUEUED.")
@click.option("--user", "-u", default="", help='A user name, or "me".')
@click.option("--name", default="", help="Exactly this name.")
@click.option("--search", "q", default="", help="Part of a name, or an id.")
@click.option("--limit", "-n", type=click.IntRange(1, 200), default=20, show_default=True)
@output_options
@pass_session
def ps(session: Session, /, project: str | None, output: Output, **filters: Any) -> None:
    """List jobs, newest first."""
    filters["status"] = tuple(filters["status"].upper().split(",")) if filters["status"] else ()
    page = session.client.jobs(session.project(project), **filters)
    output.rows(page.results, COLUMNS)


@click.command()
@job_argument
@project_option
@output_options
@pass_session
def get(session: Session, job_id: int, project: str | None, output: Output) -> None:
    """Show one job with its stages and workers."""
    slug = session.project(project)
    job = session.client.job(slug, job_id)
    output.one(job, lambda: _show_job(job, session.client.attempts(slug, job_id)))


@click.command(name="wait")
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
    """Wait until jobs have ended; the exit code is that of the first that did not succeed."""
    slug = session.project(project)
    codes = [wait(session.client, slug, job_id, timeout_s) for job_id in job_ids]
    context.exit(next((code for code in codes if code), 0))


@click.command()
@jobs_argument
@project_option
@pass_session
def cancel(session: Session, job_ids: tuple[int, ...], project: str | None) -> None:
    """End jobs. Those that wait are cancelled at once, others are stopped."""
    slug = session.project(project)
    for job_id in job_ids:
        job = session.client.cancel(slug, job_id)
        click.echo(f"Job {job.id}: {job.status_label}")


@click.command()
@job_argument
@project_option
@click.option("--follow/--detach", "-f/-d", default=False, help="Show the log until it ends.")
@output_options
@pass_session
@click.pass_context
def rerun(
    context: click.Context,
    session: Session,
    job_id: int,
    project: str | None,
    follow: bool,  # noqa: FBT001
    output: Output,
) -> None:
    """Run a job again, as a new job with the same specification."""
    job = session.client.rerun(session.project(project), job_id)
    output.one(job, lambda: click.echo(f"Job {job.id} ({job.name}): {job.url}"))
    if follow:
        context.exit(JobView(session.client, job).follow())


@click.command()
@jobs_argument
@project_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def delete(session: Session, job_ids: tuple[int, ...], project: str | None, *, yes: bool) -> None:
    """Remove ended jobs with their logs, for good."""
    slug = session.project(project)
    if not yes:
        names = ", ".join(map(str, job_ids))
        click.confirm(f"Remove job {names} with log and history?", abort=True, err=True)
    for job_id in job_ids:
        session.client.delete(slug, job_id)
        click.echo(f"Job {job_id}: removed")


def _show_job(job: Job, attempts: list[Attempt]) -> None:
    facts = {
        "Job": f"{job.id} ({job.name})",
        "Status": job.status,
        "Why": _why(job),
        "Message": job.message,
        "What to do": job.hint,
        "Exit code": "" if job.exit_code is None else str(job.exit_code),
        "Nodes": f"{job.num_nodes} on {job.backend}",
        "Submitted": f"{age(job.created_at)} ago by {job.submitted_by}",
        "Rerun of": str(job.rerun_of or ""),
        "Page": job.url,
    }
    for name, value in facts.items():
        if value:
            click.echo(f"{name:<12}{value}")
    for attempt in attempts:
        _show_attempt(attempt)


def _show_attempt(attempt: Attempt) -> None:
    click.echo(f"\nAttempt {attempt.number}  {attempt.stop_reason}".rstrip())
    for stage in attempt.stages:
        took = "" if stage.duration_s is None else duration(stage.duration_s)
        said = stage.failure or stage.detail
        click.echo(f"  {stage.label:<16}{stage.state:<8}{took:>8}  {said}".rstrip())
    if attempt.workers:
        click.echo()
        rows = [
            [str(w.rank), w.mesh, w.status, w.address, _code(w.exit_code), w.detail]
            for w in attempt.workers
        ]
        print_table(["RANK", "MESH", "STATUS", "ADDRESS", "EXIT", "DETAIL"], rows)


def _code(code: int | None) -> str:
    return "" if code is None else str(code)
