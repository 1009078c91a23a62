"""The results of one action on many jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

# The most jobs of one request.
BULK_LIMIT = 200

DONE, UNCHANGED, REFUSED = "done", "unchanged", "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """The result of a bulk action for one job."""

    job: int
    name: Annotated[str, Meta(description="Empty if there is no such job.")] = ""
    result: Annotated[str, Meta(description="done, unchanged or refused.")]
    message: str
    code: Annotated[str, Meta(description="Of the error, if it was refused.")] = ""
    new_job: Annotated[int | None, Meta(description="The job that reruns it.")] = None
    previous_priority: int | None = None
    previous_labels: Annotated[
        dict[str, str | None] | None,
        Meta(description="The changes that restore its labels: null removes one."),
    ] = None

    @property
    def is_refused(self) -> bool:
        """Whether the portal refused the action for this job."""
        return self.result == REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """The results of a bulk action, in the order of the jobs."""

    results: list[JobOutcome]
