"""Arguments and options that commands share: jobs by number or name, and the project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from monarch_client.cli import completion
from monarch_client.cli.session import Session
from monarch_client.cli.terminal import without_tokens
from monarch_client.errors import UnknownNameError
from monarch_client.rest.job_names import find_job, is_number

F = TypeVar("F", bound=Callable[..., Any])

project_option = click.option(
    "--project",
    "-p",
    help="Default: MPORTAL_PROJECT, or your only one.",
    shell_complete=completion.projects,
)
SPEC_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
drop_deleted_option = click.option(
    "--drop-deleted", is_flag=True, help="Leave out dependencies on deleted jobs."
)


def job_argument(command: F) -> F:
    """Give a command the argument JOB, as `job_id`: a number, or the name of the newest such job.

    JOB may begin with a project, `rl/ppo`, which then is the command's `project`.
    """

    @wraps(command)
    def with_number(*args: Any, job_id: str, project: str | None, **options: Any) -> Any:
        slug, [number] = job_numbers(_session(), project, [job_id])
        return command(*args, job_id=number, project=slug, **options)

    argument = click.argument("job_id", metavar="JOB", shell_complete=completion.jobs)
    return argument(with_number)  # type: ignore[return-value]


def running_job_argument(command: F) -> F:
    """Give a command the argument JOB of a running job, as `job`: the text itself."""
    argument = click.argument(
        "job",
        metavar="JOB",
        shell_complete=completion.running_jobs,
        callback=lambda _context, _parameter, text: _no_token(text),
    )
    return argument(command)


def _no_token(text: str) -> str:
    """Return the name of a job. BadParameter: it is a token, and addresses are logged."""
    if without_tokens(text) != text:
        raise click.BadParameter(f"{text} is a token.", param_hint="JOB")
    return text


def jobs_argument(command: F) -> F:
    """Give a command the arguments JOB..., as `job_ids`; each is read as by `job_argument`."""

    @wraps(command)
    def with_numbers(
        *args: Any, job_ids: Sequence[str], project: str | None, **options: Any
    ) -> Any:
        slug, numbers = job_numbers(_session(), project, job_ids)
        return command(*args, job_ids=tuple(numbers), project=slug, **options)

    argument = click.argument(
        "job_ids", nargs=-1, required=True, metavar="JOB...", shell_complete=completion.jobs
    )
    return argument(with_numbers)  # type: ignore[return-value]


def job_numbers(
    session: Session, project: str | None, texts: Sequence[str]
) -> tuple[str | None, list[int]]:
    """Return the numbers of the jobs that a user named, and their project.

    Numbers alone need no request. UnknownNameError: a name that no job has. BadParameter: jobs of
    two projects.
    """
    if all(is_number(text) for text in texts):
        return project, [int(text) for text in texts]
    names = [_no_token(text) for text in texts]
    found = [find_job(session.client, name, project or session.config.project) for name in names]
    for job in found:
        if job.number is None:
            raise UnknownNameError(
                f"Project {job.project} has no job named {job.name!r}. "
                f"See: mportal ps --project {job.project}"
            )
    projects = {job.project for job in found}
    if len(projects) > 1:
        raise click.BadParameter("Name jobs of one project.", param_hint="JOB...")
    return projects.pop(), [job.number for job in found if job.number is not None]


def _session() -> Session:
    session = click.get_current_context().find_object(Session)
    assert session is not None  # noqa: S101 - for the type checker: the group makes one
    return session
