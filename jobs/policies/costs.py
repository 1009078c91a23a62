"""Costs of machines: one module for money. Pure; amounts are US$ as Decimal, to six places."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

_MICRO, _CENT = Decimal("0.000001"), Decimal("0.01")
_HOUR_S = 3600
# Of a budget of next to nothing; a larger number would mean nothing.
_MOST_PERCENT = Decimal(1_000_000)
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Use:
    """One attempt's time on a cluster. `end` is None while it goes on."""

    attempt_id: int
    begin: datetime
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """A bill divided: the cost of each attempt, and the cost of idle time."""

    of_attempts: dict[int, Decimal]
    idle: Decimal


@dataclass(frozen=True, slots=True)
class Charge:
    """A cluster's known cost: `usd` until `billed_at`, and the price of an hour.

    `ended`: since when it costs nothing more; None while it goes on.
    """

    began: datetime
    usd: Decimal | None = None
    usd_per_hour: Decimal | None = None
    billed_at: datetime | None = None
    ended: datetime | None = None

    def until(self, now: datetime) -> datetime:
        """Return the end of the time that has cost something by `now`."""
        return max(self.began, now if self.ended is None else min(now, self.ended))


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a cluster's time, as far as it is one attempt's; None: it is no attempt's.

    `part`: of the machines, where several share them. `usd` has as many places as it takes.
    """

    begin: datetime
    end: datetime
    attempt_id: int | None
    part: Decimal
    usd: Decimal


def rounded(usd: Decimal) -> Decimal:
    """Round down to the precision of a column."""
    return usd.quantize(_MICRO, rounding=ROUND_DOWN)


def for_time(usd_per_hour: Decimal, seconds: float) -> Decimal:
    """Return the price of that time."""
    return rounded(usd_per_hour * Decimal(str(seconds)) / _HOUR_S)


def per_hour(usd: Decimal, seconds: float) -> Decimal | None:
    """Return the price of an hour, from that of `seconds`; None where there was no time."""
    return rounded(usd * _HOUR_S / Decimal(str(seconds))) if seconds > 0 else None


def shown(usd: Decimal) -> str:
    """Format an amount for a sentence: "$1,234.50", "$0.0042"."""
    return f"${usd:,.2f}" if usd >= _CENT or not usd else f"${usd:.4f}"


def percent_of(usd: Decimal, budget: Decimal) -> int:
    """Return which part of `budget` that is; 100 only if nothing of it is left."""
    return int(min(_MOST_PERCENT, usd * 100 / budget))


def so_far(charge: Charge, now: datetime) -> Decimal:
    """Return the bill, and the cost since then by the price of an hour."""
    billed = charge.usd or NOTHING
    if charge.usd_per_hour is None:
        return billed
    seconds = (charge.until(now) - (charge.billed_at or charge.began)).total_seconds()
    return billed + for_time(charge.usd_per_hour, max(0.0, seconds))


def within(
    usd: Decimal, *, began: datetime, until: datetime, begin: datetime, end: datetime
) -> Decimal:
    """Return the part of the cost of `began` to `until` that belongs to `begin` to `end`, by time.

    The parts of windows that meet add up to `usd`.
    """
    return _before(end, usd, began, until) - _before(begin, usd, began, until)


def _before(moment: datetime, usd: Decimal, began: datetime, until: datetime) -> Decimal:
    if moment >= until:
        return usd
    if moment <= began:
        return NOTHING
    return rounded(usd * _length(began, moment) / _length(began, until))


def slices(
    usd: Decimal,
    uses: Sequence[Use],
    *,
    began: datetime,
    until: datetime,
    waits: bool,
    cuts: Iterable[datetime] = (),
) -> list[Slice]:
    """Divide as `shares` does, in stretches of time, each on one side of every cut."""
    uses = sorted(uses, key=lambda use: (use.begin, use.attempt_id))
    spans = _spans(uses, began, until, waits=waits) if uses else []
    total = _length(began, until)
    if not total:
        return [Slice(began, until, uses[0].attempt_id if uses else None, Decimal(1), usd)]
    found = []
    for begin, end, present in _stretches(spans, began, until, cuts):
        part = 1 / Decimal(len(present))
        price = usd * _length(begin, end) / total * part
        found += [Slice(begin, end, attempt_id, part, price) for attempt_id in present]
    return found


def shares(
    usd: Decimal, uses: Sequence[Use], *, began: datetime, until: datetime, waits: bool
) -> Shares:
    """Divide what a cluster has cost from `began` to `until`, by time. The parts add up to `usd`.

    The first attempt pays for its machines' start; attempts at one time share it evenly. Where a
    cluster `waits` for further jobs, the time of no attempt is idle time; else it belongs to the
    attempt before it. Switched-off time is taken to cost as much as any other: a caller that knows
    better ends at `until`.
    """
    uses = sorted(uses, key=lambda use: (use.begin, use.attempt_id))
    if not uses:
        return Shares({}, usd)
    if len(uses) == 1 and not waits:
        return Shares({uses[0].attempt_id: usd}, NOTHING)
    spans = _spans(uses, began, until, waits=waits)
    seconds = _seconds(spans, began, until)
    total = sum(seconds.values(), NOTHING)
    if not total:
        return Shares({uses[0].attempt_id: usd}, NOTHING)
    parts = {
        attempt_id: rounded(usd * part / total)
        for attempt_id, part in seconds.items()
        if attempt_id is not None
    }
    rest = usd - sum(parts.values(), NOTHING)
    if None not in seconds:
        # What rounding left over has to be charged to one job.
        parts[uses[-1].attempt_id] = parts.get(uses[-1].attempt_id, NOTHING) + rest
        rest = NOTHING
    return Shares(parts, rest)


def _spans(
    uses: Sequence[Use], began: datetime, until: datetime, *, waits: bool
) -> list[tuple[int, datetime, datetime]]:
    spans = []
    for place, use in enumerate(uses):
        begin = began if place == 0 else min(until, max(began, use.begin))
        end = use.end or until
        if not waits:
            following = uses[place + 1].begin if place + 1 < len(uses) else until
            end = max(end, following)
        spans.append((use.attempt_id, begin, max(begin, min(end, until))))
    return spans


def _seconds(
    spans: Iterable[tuple[int, datetime, datetime]], began: datetime, until: datetime
) -> dict[int | None, Decimal]:
    """Sum the seconds by attempt; None is the key of idle seconds."""
    found: dict[int | None, Decimal] = {}
    for begin, end, present in _stretches(spans, began, until):
        for attempt_id in present:
            found[attempt_id] = found.get(attempt_id, NOTHING) + _length(begin, end) / len(present)
    return found


def _stretches(
    spans: Iterable[tuple[int, datetime, datetime]],
    began: datetime,
    until: datetime,
    cuts: Iterable[datetime] = (),
) -> Iterator[tuple[datetime, datetime, list[int | None]]]:
    """Yield stretches of time with the attempts that lasted all through; [None]: none did."""
    spans = list(spans)
    inner = {cut for cut in cuts if began < cut < until}
    marks = sorted({began, until, *inner, *(mark for _, *both in spans for mark in both)})
    for begin, end in itertools.pairwise(marks):
        present: list[int | None] = [
            attempt_id for attempt_id, first, last in spans if first <= begin and end <= last
        ]
        yield begin, end, present or [None]


def _length(begin: datetime, end: datetime) -> Decimal:
    return Decimal(str((end - begin).total_seconds()))
