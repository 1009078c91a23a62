"""What the portal answers about arrays of jobs, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monarch_client.rest.models import Job


@dataclass(frozen=True)
class JobArray:
    """Jobs that were submitted as one; of those that were run again, the newest."""

    id: int
    project: str
    name: str
    size: int
    max_parallel: int | None
    values: dict[str, list[str]]
    counts: dict[str, int]
    submitted_by: str
    created_at: datetime
    ended_at: datetime | None
    is_final: bool
    can_cancel: bool
    can_rerun_failed: bool
    jobs: list[Job]
    url: str
    deleted: int = 0
