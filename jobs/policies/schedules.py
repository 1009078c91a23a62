"""The turns of a schedule: which of its times runs now, and which were missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.policies.timetables import Timetable
from jobs.statuses import CatchUpPolicy

# A time that is looked at so soon is no missed one.
IN_TIME = timedelta(minutes=2)
# Of the times of an outage so many newest run where all are to be caught up.
MOST_CAUGHT_UP = 25
# Beyond this the message is "more than".
MOST_COUNTED = 100
_BEFORE = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Missed:
    """Past times without a run: `count` is at most MOST_COUNTED + 1, which means "more"."""

    first: datetime
    last: datetime
    count: int

    @property
    def how_many(self) -> str:
        """Text of the count."""
        if self.count > MOST_COUNTED:
            return f"more than {MOST_COUNTED} times"
        return "once" if self.count == 1 else f"{self.count} times"


@dataclass(frozen=True, slots=True)
class Turn:
    """The due step of a schedule: `slot` runs (None: none does), and `next_at` is the next step.

    `next_at` may have come already: then there is another turn at once. None: none comes any more.
    """

    slot: datetime | None
    missed: Missed | None
    next_at: datetime | None


def turn_of(
    timetable: Timetable, next_at: datetime, now: datetime, catch_up: CatchUpPolicy
) -> Turn | None:
    """Return the turn for the times from `next_at` on, if one is due."""
    if next_at > now:
        return None
    last = timetable.last_in(next_at - _BEFORE, now)
    if last is None:
        # The zone's rules have changed since: this is no time of it any more.
        return Turn(None, None, timetable.next_after(now))
    slot = _chosen(timetable, next_at, last, now, catch_up)
    missed = _missed(timetable, next_at, slot, last)
    return Turn(slot, missed, timetable.next_after(slot or last))


def upcoming(
    timetable: Timetable, now: datetime, count: int, until: datetime | None = None
) -> list[datetime]:
    """Return the next `count` times, or as many as there are, or are until `until`."""
    times: list[datetime] = []
    while len(times) < count:
        found = timetable.next_after(times[-1] if times else now)
        if found is None or (until is not None and found > until):
            break
        times.append(found)
    return times


def _chosen(
    timetable: Timetable,
    next_at: datetime,
    last: datetime,
    now: datetime,
    catch_up: CatchUpPolicy,
) -> datetime | None:
    if catch_up == CatchUpPolicy.NONE:
        return last if now - last <= IN_TIME else None
    if catch_up == CatchUpPolicy.LATEST:
        return last
    first = timetable.next_after(next_at - _BEFORE)
    if first is not None and len(upcoming(timetable, first, MOST_CAUGHT_UP, last)) < MOST_CAUGHT_UP:
        return first
    oldest = last
    for _ in range(MOST_CAUGHT_UP - 1):
        earlier = timetable.last_in(next_at - _BEFORE, oldest - _BEFORE)
        if earlier is None:
            break
        oldest = earlier
    return oldest


def _missed(
    timetable: Timetable, next_at: datetime, slot: datetime | None, last: datetime
) -> Missed | None:
    """Return the times from `next_at` on that do not run: those before `slot`; all without one."""
    end = last if slot is None else timetable.last_in(next_at - _BEFORE, slot - _BEFORE)
    if end is None:
        return None
    first = timetable.next_after(next_at - _BEFORE)
    assert first is not None  # noqa: S101 - for the type checker: `end` is one
    count, at = 1, first
    while at < end and count <= MOST_COUNTED:
        later = timetable.next_after(at)
        assert later is not None  # noqa: S101 - likewise
        count, at = count + 1, later
    return Missed(first, end, count)
