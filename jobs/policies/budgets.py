"""The steps of a budget: it warns, holds a project's queue, ends what runs. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum

from jobs.policies.costs import percent_of, shown
from jobs.statuses import OnSpent

SPENT = 100
# The parts of its budget that a job's history reports.
JOB_WARNS_AT = 80
WARNS_AT = (50, 80, 100)


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC, from `begin` up to and without `end`."""

    begin: datetime
    end: datetime

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """Return the month in which `moment` is."""
        begin = moment.astimezone(timezone.utc).replace(
            day=1, hour=0, minute=0, second=0, microsecond=0
        )
        year, month = divmod(begin.year * 12 + begin.month, 12)
        return cls(begin, begin.replace(year=year, month=month + 1))

    @property
    def first_day(self) -> date:
        """First day of the month, as it is stored."""
        return self.begin.date()

    def __str__(self) -> str:
        return f"{self.begin:%B %Y}"


@dataclass(frozen=True, slots=True)
class Terms:
    """A project's monthly budget, and its effect when it is spent. `warn_at` is in per cent."""

    usd: Decimal
    on_spent: OnSpent
    warn_at: tuple[int, ...] = WARNS_AT

    def is_spent(self, spent: Decimal) -> bool:
        """Whether nothing of it is left."""
        return percent_of(spent, self.usd) >= SPENT

    def holds(self, spent: Decimal) -> bool:
        """Whether no further job of the project may start."""
        return self.on_spent != OnSpent.WARN and self.is_spent(spent)

    def stops(self, spent: Decimal) -> bool:
        """Whether what runs is to end."""
        return self.on_spent == OnSpent.STOP and self.is_spent(spent)


class Stand(Enum):
    """A job's progress in spending its budget."""

    FINE = "fine"
    NEAR = "near"
    SPENT = "spent"


def stand_of(spent: Decimal, usd: Decimal) -> Stand:
    """Return how far a job that has cost `spent` is with its budget of `usd`."""
    percent = percent_of(spent, usd)
    if percent >= SPENT:
        return Stand.SPENT
    return Stand.NEAR if percent >= JOB_WARNS_AT else Stand.FINE


def newly_crossed(terms: Terms, spent: Decimal, noted: Collection[int]) -> tuple[int, ...]:
    """Return the thresholds that are reached and not yet reported, lowest first."""
    percent = percent_of(spent, terms.usd)
    return tuple(at for at in sorted(set(terms.warn_at)) if at <= percent and at not in noted)


def is_void(threshold: int, spent_then: Decimal, usd: Decimal) -> bool:
    """Whether the report of a threshold is void, now that the budget is `usd`."""
    return percent_of(spent_then, usd) < threshold


def said_of(slug: str, terms: Terms, spent: Decimal, month: Month) -> str:
    """Describe in a sentence how much of its budget the project has used."""
    percent = percent_of(spent, terms.usd)
    return f"Project {slug} has used {percent} % of its {shown(terms.usd)} for {month}."


def why_held(slug: str, terms: Terms, spent: Decimal, month: Month) -> str:
    """Explain to owners of waiting jobs that the budget holds them.

    No amount that grows by the second is in it: each change is reported to all watchers.
    """
    turn = f"{month.end.day} {month.end:%B %Y}, 00:00 UTC"
    return (
        f"{said_of(slug, terms, spent, month)} Its jobs start again on {turn}, or when an "
        "administrator raises the amount."
    )
