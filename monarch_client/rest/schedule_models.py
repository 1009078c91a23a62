"""What the portal answers about schedules, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class ScheduleRun:
    """One time of a schedule, and what became of it. `job`: None where it made none."""

    slot: datetime
    is_manual: bool
    outcome: str
    outcome_label: str
    message: str
    job: int | None
    job_status: str
    job_status_label: str


@dataclass(frozen=True)
class Schedule:
    """A job that is submitted again and again. `spec_source`, `upcoming` and `runs` are
    there when one was asked for; `remarks` say what its cron expression seldom means.

    `next_at`: None while it is paused, or when no other time comes.
    """

    name: str
    project: str
    job_name: str
    cron: str
    zone: str
    overlap: str
    catch_up: str
    owner: str
    paused: bool
    message: str
    next_at: datetime | None
    last: ScheduleRun | None
    last_job: int | None
    created_at: datetime
    updated_at: datetime
    can_manage: bool
    spec_source: str | None = None
    upcoming: list[datetime] = field(default_factory=list)
    runs: list[ScheduleRun] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
