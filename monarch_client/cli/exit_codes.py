"""Exit codes of commands: the job's own wherever a job was followed to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.attaching.errors import UnknownJobError
from monarch_client.errors import (
    ArchiveError,
    ClientError,
    InvalidSpecErrors,
    InvalidValueError,
    MissingError,
    UnknownNameError,
)
from monarch_client.rest.config import NoProjectError

if TYPE_CHECKING:
    from monarch_client.wire.jobs import Job

FAILED_WITHOUT_CODE = 1
NOTHING_FOUND = 1  # as grep(1)
BAD_REQUEST = 2  # a wrong value, or a specification with errors
TIMED_OUT = 124  # as timeout(1)
PORTAL_TROUBLE = 125  # the portal refused or could not be reached: it says nothing about a job
DETACHED = 130  # Ctrl-C: the job continues
CANCELLED = 143  # as a process ended by SIGTERM

_LARGEST = 255
# What only another command line can mend: a wrong value, an unknown object, no project.
_WRONG = (
    ArchiveError,
    InvalidSpecErrors,
    InvalidValueError,
    MissingError,
    NoProjectError,
    UnknownJobError,
    UnknownNameError,
)


def exit_code_of_error(error: ClientError) -> int:
    """Return the exit code for an error: of what the user gave, or of the portal."""
    return BAD_REQUEST if isinstance(error, _WRONG) else PORTAL_TROUBLE


def exit_code_of_refusal(code: str) -> int:
    """Return the exit code for one job of several that the portal refused with this code."""
    is_wrong = code == "not_found" or code.startswith("invalid_")
    return BAD_REQUEST if is_wrong else PORTAL_TROUBLE


def exit_code_of(job: Job) -> int:
    """Return the exit code for an ended job."""
    if job.status == "SUCCEEDED":
        return 0
    if job.status == "CANCELLED":
        return CANCELLED
    code = job.exit_code or FAILED_WITHOUT_CODE
    # A shell would cut a larger one to its low byte, which may be 0.
    return code if 0 < code <= _LARGEST else FAILED_WITHOUT_CODE
