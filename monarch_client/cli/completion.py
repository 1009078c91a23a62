"""Completion of values in a shell. A portal that does not answer in two seconds completes nothing.

Each function goes to `shell_complete` of a click parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from monarch_client.cli.session import Session
from monarch_client.errors import ClientError

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.wire.jobs import Job

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Values = Iterable[tuple[str, str]]  # a value, and what helps to choose it

_MOST_JOBS = 50
_TIMEOUT_S = 2.0


def _completer(read: Callable[[rest.PortalClient, str], Values], *, in_project: bool) -> Completer:
    """Return a completer of the values that `read` returns for a client and a project."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        session = context.find_root().obj or _impatient_session()
        given = context.params.get(parameter.name or "")
        taken = {str(value) for value in given} if isinstance(given, tuple) else set()
        try:
            # The session closes its client with the command that is current.
            with context.scope():
                project = session.project(context.params.get("project")) if in_project else ""
                values = list(read(session.client, project))
        except ClientError:
            return []
        return [
            CompletionItem(value, help=help_text)
            for value, help_text in values
            if value.startswith(incomplete) and value not in taken
        ]

    return complete


def _impatient_session() -> Session:
    return Session(options={"timeout_s": _TIMEOUT_S, "patience_s": 0.0})


def _jobs(client: rest.PortalClient, project: str) -> Values:
    return _named(client.jobs(project, limit=_MOST_JOBS).results)


def _job_names(client: rest.PortalClient, project: str) -> Values:
    return _names(client.jobs(project, limit=_MOST_JOBS).results)


def _running_jobs(client: rest.PortalClient, project: str) -> Values:
    return _named(client.jobs(project, status=["RUNNING"], limit=_MOST_JOBS).results)


def _named(jobs: Sequence[Job]) -> Values:
    """Return the numbers of the jobs, and then their names."""
    return [*((str(job.id), f"{job.name} {job.status}") for job in jobs), *_names(jobs)]


def _names(jobs: Sequence[Job]) -> Values:
    """Return each name of the jobs, newest first, once: with the newest job that has it."""
    newest: dict[str, Job] = {}
    for job in jobs:
        newest.setdefault(job.name, job)
    return [(name, f"job {job.id} {job.status}") for name, job in newest.items()]


def _clusters(client: rest.PortalClient, project: str) -> Values:
    return [(cluster.name, cluster.status) for cluster in client.clusters(project)]


jobs = _completer(_jobs, in_project=True)
running_jobs = _completer(_running_jobs, in_project=True)
job_names = _completer(_job_names, in_project=True)
clusters = _completer(_clusters, in_project=True)
schedules = _completer(
    lambda client, project: [(each.name, each.cron) for each in client.schedules(project)],
    in_project=True,
)
templates = _completer(
    lambda client, project: [(each.name, each.title) for each in client.templates(project)],
    in_project=True,
)
secrets = _completer(
    lambda client, project: [(each.name, "") for each in client.secrets(project)], in_project=True
)
members = _completer(
    lambda client, project: [(each.username, each.role) for each in client.members(project)],
    in_project=True,
)
projects = _completer(
    lambda client, _project: [(each.slug, each.name) for each in client.projects()],
    in_project=False,
)
