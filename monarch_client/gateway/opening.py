"""The opening of a session over REST: which portal, which job, and a ticket for the link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from monarch_client.attaching.errors import AttachError, UnknownJobError
from monarch_client.attaching.folders import sweep_notes
from monarch_client.errors import ClientError
from monarch_client.rest.client import PortalClient
from monarch_client.rest.config import load, signed_in
from monarch_client.rest.job_names import NamedJob
from monarch_client.rest.job_names import find_job as find_named_job

# Set by `mportal attach` for its program: PROJECT/NUMBER.
JOB_VARIABLE = "MPORTAL_ATTACH"
# Set by `mportal dev` and `mportal attach --sync` for their programs: the folder of the code.
FOLDER_VARIABLE = "MPORTAL_SYNC"


@dataclass(frozen=True)
class Opening:
    """A session that the portal has opened, with the ticket of its link."""

    portal_url: str
    job: str
    session: int
    ticket: str
    token: str = field(default="", repr=False)
    # Of the job, for REST.
    project: str = ""
    number: int = 0

    @property
    def note(self) -> dict[str, Any]:
        """Return what ends the session once its program was killed."""
        return {
            "portal_url": self.portal_url,
            "project": self.project,
            "job": self.number,
            "session": self.session,
        }


@contextmanager
def opened_session(
    job: str | int, project: str | None, stated: dict[str, Any] | None = None
) -> Iterator[Opening]:
    """Open a session in a job, and end it if the block fails. `stated`: its kind and purpose.

    ClientError: the portal is not reached, or refuses it.
    """
    config = load(os.environ)
    with signed_in(config) as client:
        slug, number = find_job(client, job, project or config.project)
        _end_abandoned(client, config.url)
        ticket = client.open_gateway_session(slug, number, stated)
        try:
            yield Opening(
                config.url,
                f"job {number}",
                ticket.id,
                ticket.ticket,
                config.token,
                project=slug,
                number=number,
            )
        except BaseException:
            with suppress(ClientError):
                client.end_gateway_session(slug, number, ticket.id)
            raise


def _end_abandoned(client: PortalClient, portal_url: str) -> None:
    """End the sessions of programs of this machine that were killed with their link processes.

    The portal counts them for five minutes: to it they look like programs without a network.
    """
    for note in sweep_notes():
        if note.get("portal_url") == portal_url:
            with suppress(ClientError):
                client.end_gateway_session(note["project"], note["job"], note["session"])


def find_job(client: PortalClient, job: str | int, project: str | None) -> tuple[str, int]:
    """Return the project and number of a job, or of the running job of a name.

    AttachError: none of them runs. UnknownJobError: the project has no such job.
    """
    if not str(job):
        raise AttachError('Which job? Give its number or name, such as connect("ppo").')
    found = find_named_job(client, str(job), project, status=["RUNNING"])
    if found.number is None:
        raise _not_running(client, found)
    return found.project, found.number


def _not_running(client: PortalClient, named: NamedJob) -> AttachError:
    """Return the error that no job of a name runs: what the newest one does instead."""
    project, name = named.project, named.name
    newest = client.jobs(project, name=name, limit=1).results if name else []
    if not newest:
        return UnknownJobError(
            f"Project {project} has no job named {name!r}. See: mportal ps --project {project}"
        )
    (job,) = newest
    who, place = f"Job {job.id} ({name})", f"{project}/{job.id}"
    if job.is_final:
        return AttachError(
            f"{who} has ended: {job.status_label}. Run it again: mportal rerun {place}"
        )
    look = "why" if job.status == "QUEUED" else "get"
    return AttachError(f"{who} is not running: {job.status_label}. See: mportal {look} {place}")
