"""The number of a job that a user names: by its number, its name or PROJECT/NUMBER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monarch_client.rest.config import project_of

if TYPE_CHECKING:
    from monarch_client.rest.client import PortalClient


@dataclass(frozen=True)
class NamedJob:
    """The job that a text names. `number`: None if the project has no such job."""

    project: str
    name: str
    number: int | None


def is_number(text: str) -> bool:
    """Whether the text is a job's number. No name is one: it would be ambiguous."""
    return text.isascii() and text.isdigit()


def find_job(
    client: PortalClient, text: str, project: str | None, *, status: Sequence[str] = ()
) -> NamedJob:
    """Return the newest job of the name that `text` is, or the job of its number.

    `text` may begin with another project, as PROJECT/NUMBER or PROJECT/NAME. `status`: only jobs
    with one of these are found by name.
    """
    given, is_qualified, rest = text.partition("/")
    name = rest if is_qualified else text
    slug = project_of(client, given if is_qualified else project)
    if is_number(name):
        return NamedJob(slug, name, int(name))
    found = client.jobs(slug, status=status, name=name, limit=1).results if name else []
    return NamedJob(slug, name, found[0].id if found else None)
