"""What machines cost: one module for money. Pure; amounts are US$ as Decimal, to six places."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

_MICRO = Decimal("0.000001")
_HOUR_S = 3600
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Use:
    """One attempt's time on a cluster. `end` is None while it goes on."""

    attempt_id: int
    begin: datetime
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """A bill divided: what each attempt has cost, and what nobody's attempt did."""

    of_attempts: dict[int, Decimal]
    idle: Decimal


def rounded(usd: Decimal) -> Decimal:
    """To what a column keeps; never more than it was."""
    return usd.quantize(_MICRO, rounding=ROUND_DOWN)


def for_time(usd_per_hour: Decimal, seconds: float) -> Decimal:
    """The price of that time."""
    return rounded(usd_per_hour * Decimal(str(seconds)) / _HOUR_S)


def per_hour(usd: Decimal, seconds: float) -> Decimal | None:
    """The price of an hour, from that of `seconds`; None where there was no time."""
    return rounded(usd * _HOUR_S / Decimal(str(seconds))) if seconds > 0 else None


def shares(
    usd: Decimal, uses: Sequence[Use], *, began: datetime, until: datetime, waits: bool
) -> Shares:
    """Divide what a cluster has cost from `began` to `until`, by time. The parts add up to `usd`.

    The first attempt pays for its machines' start; attempts at one time share it evenly. Where a
    cluster `waits` for further jobs, the time of no attempt is idle time; else it belongs to the
    attempt before it. Switched-off time is taken to cost as much as any other: whoever knows better
    ends at `until`.
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
    parts = {who: rounded(usd * part / total) for who, part in seconds.items() if who is not None}
    rest = usd - sum(parts.values(), NOTHING)
    if None not in seconds:
        # What rounding left over has to be somebody's.
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
    """Seconds by attempt; those of None were nobody's."""
    spans = list(spans)
    marks = sorted({began, until, *(mark for _, *both in spans for mark in both)})
    found: dict[int | None, Decimal] = {}
    for begin, end in itertools.pairwise(marks):
        present: list[int | None] = [
            who for who, first, last in spans if first <= begin and end <= last
        ]
        length = Decimal(str((end - begin).total_seconds()))
        for who in present or [None]:
            found[who] = found.get(who, NOTHING) + length / max(1, len(present))
    return found
