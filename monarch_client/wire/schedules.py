"""Schedules and their runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment

Outcome: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "ScheduleOutcome"})]
Overlap: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "OverlapPolicy"})]
CatchUp: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "CatchUpPolicy"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """One time of a schedule, with its outcome. `job`: null where it made none."""

    slot: Annotated[Moment, Meta(description="When it was due, or requested.")]
    is_manual: Annotated[bool, Meta(description="A person requested it.")]
    outcome: Outcome
    outcome_label: str
    message: str
    job: int | None
    job_status: str
    job_status_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule as lists show it."""

    name: str
    project: str
    job_name: str
    cron: str
    meaning: Annotated[
        str, Meta(description="The cron expression as a sentence, on the clock of `zone`.")
    ] = ""
    remarks: Annotated[
        list[str],
        Meta(description="What its cron expression means, where that is seldom intended."),
    ] = field(default_factory=list)
    zone: str
    overlap: Overlap
    catch_up: CatchUp
    owner: Annotated[str, Meta(description="In whose name its jobs are submitted.")]
    paused: bool
    message: Annotated[str, Meta(description="Why it is paused, or what went wrong.")]
    next_at: Annotated[
        Moment | None, Meta(description="Null while it is paused, or without a next time.")
    ]
    upcoming: Annotated[list[Moment], Meta(description="The next three times.")] = field(
        default_factory=list
    )
    last: ScheduleRun | None
    last_job: int | None
    created_at: Moment
    updated_at: Moment
    can_manage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDetail(Schedule):
    """A schedule with its specification and the times around now."""

    spec_source: str
    runs: list[ScheduleRun]
