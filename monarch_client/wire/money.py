"""Budgets and usage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment, Usd

OnSpent: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "OnSpent"})]
UsageBy: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "UsageBy"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A threshold that was crossed this month, and what was spent then."""

    threshold: Annotated[int, Meta(description="Percent.")]
    usd: Usd
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A project's budget of this calendar month (UTC), and what was spent of it so far."""

    project: str
    usd: Annotated[
        Usd | None,
        Meta(description="What the project may spend in a month; null: it has no budget."),
    ]
    on_spent: OnSpent
    warn_at: Annotated[list[int], Meta(description="Percent.")]
    month: Annotated[str, Meta(description="Such as 2026-11.")]
    begins_at: Moment
    ends_at: Moment
    spent_usd: Annotated[
        Usd, Meta(description="With the cost of idle machines that the project keeps.")
    ]
    percent: int | None
    holds: Annotated[bool, Meta(description="Whether no further job of the project starts.")]
    sentence: Annotated[str, Meta(description="The state of the budget, for people.")]
    notices: list[Notice]
    set_by: str
    set_at: Moment | None
    may_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The usage of one person, job or day."""

    key: Annotated[
        str,
        Meta(description="A user name, a job's id or a day; empty: machines without a job."),
    ]
    name: str
    usd: Usd
    node_hours: float
    gpu_hours: Annotated[float | None, Meta(description="Null where that is not known.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of a project on the days from `first_day` to `last_day`, so far."""

    project: str
    first_day: date
    last_day: date
    by: UsageBy
    rows: list[UsageRow]
    usd: Usd
    node_hours: float
    gpu_hours: float | None
