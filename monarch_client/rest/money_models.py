"""What the portal answers about money: budgets and usage. Amounts are US$ as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Notice:
    """A threshold, in per cent, that was crossed this month."""

    threshold: int
    usd: str
    at: datetime


@dataclass(frozen=True)
class Budget:
    """A project's budget of this month. `usd` None: it has none; `holds`: no job starts."""

    project: str
    usd: str | None
    on_spent: str
    warn_at: list[int]
    month: str
    begins_at: datetime
    ends_at: datetime
    spent_usd: str
    percent: int | None
    holds: bool
    sentence: str
    notices: list[Notice]
    set_by: str
    set_at: datetime | None
    may_set: bool


@dataclass(frozen=True)
class UsageRow:
    """What one person, job or day has used; `key` "": machines without a job."""

    key: str
    name: str
    usd: str
    node_hours: float
    gpu_hours: float | None


@dataclass(frozen=True)
class Usage:
    """What those days, both included, have cost by now."""

    project: str
    first_day: str
    last_day: str
    by: str
    rows: list[UsageRow]
    usd: str
    node_hours: float
    gpu_hours: float | None
