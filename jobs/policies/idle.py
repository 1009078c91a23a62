"""What becomes of a cluster that is kept while no job is on it. Pure: a snapshot and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

from jobs.policies.limits import Limit

# Of a cluster whose job says nothing about it.
DEFAULT_MINUTES = 10
# The backend's own stop comes so much later than the portal's: it is for a portal that is away.
BACKSTOP_MARGIN_MINUTES = 30
# How much longer than its policy says a cluster is left to a job that new machines would do for.
ALIKE_MINUTES = 60
# The same while anybody waits for machines there: that job has these with the next plan, or others
# have them.
NEXT_MINUTES = 2


class Wanted(IntEnum):
    """Whether a job that waits wants a kept cluster, the more the higher."""

    BY_NOBODY = 0
    NEXT = (
        1  # by one that reuses machines and asks for just such, while somebody waits for machines
    )
    ALIKE = 2  # by such a one, while nobody else needs them
    BY_NAME = 3  # it can run nowhere else


_LONGER_MINUTES = {Wanted.ALIKE: ALIKE_MINUTES, Wanted.NEXT: NEXT_MINUTES}


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """What a job asked for. `until`: somebody wants it kept at least so long."""

    minutes: int = DEFAULT_MINUTES
    then: Literal["stop", "down"] = "down"
    down_after: int | None = None
    until: datetime | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> IdlePolicy:
        """The inverse of `to_dict`; a key that is not there has its default."""
        until, minutes = content.get("until"), content.get("minutes")
        return cls(
            minutes=DEFAULT_MINUTES if minutes is None else minutes,
            then=content.get("then", "down"),
            down_after=content.get("down_after"),
            until=datetime.fromisoformat(until) if until else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """As it is stored with the cluster; what is not set is left out."""
        content = {
            "minutes": self.minutes,
            "then": self.then,
            "down_after": self.down_after,
            "until": self.until.isoformat() if self.until else None,
        }
        return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Kept:
    """A cluster without a job."""

    idle_since: datetime
    policy: IdlePolicy
    stopped_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave it as it is; look again at `until` (None: only somebody ends it)."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """Switch the machines off and keep their disks."""

    reason: str


@dataclass(frozen=True, slots=True)
class TakeDown:
    """Give the machines back."""

    reason: str


def decide(
    kept: Kept, limit: Limit | None, now: datetime, wanted: Wanted = Wanted.BY_NOBODY
) -> Wait | SwitchOff | TakeDown:
    """What is due with a kept cluster at `now`; `limit` is in minutes, and holds whoever wants it.

    It holds for machines that are on. What is switched off costs little, and may be somebody's
    work: that goes by its policy alone, and not while a job names it.
    """
    policy = kept.policy
    if kept.stopped_at is not None:
        if policy.down_after is None:
            return Wait(None)
        # It holds no machines that others could have: no need to hurry.
        wanted = Wanted.ALIKE if wanted is Wanted.NEXT else wanted
        gone_at = _left_to(kept.stopped_at + timedelta(minutes=policy.down_after), wanted)
        if gone_at is None or now < gone_at:
            return Wait(gone_at)
        return TakeDown(f"It was switched off for {policy.down_after} min.")
    ends_at = left_until(kept, limit, wanted)
    if ends_at is None or now < ends_at:
        return Wait(ends_at)
    idle = round((now - kept.idle_since).total_seconds() / 60)
    reason = f"No job was on it for {idle} min."
    return SwitchOff(reason) if policy.then == "stop" else TakeDown(reason)


def left_until(kept: Kept, limit: Limit | None, wanted: Wanted) -> datetime | None:
    """Until when the machines stay on without a job; None: for as long as it is wanted."""
    ends_at = _left_to(idle_end(kept, None), wanted)
    if limit is None:
        return ends_at
    most = kept.idle_since + timedelta(minutes=limit.value)
    return most if ends_at is None else min(ends_at, most)


def _left_to(ends_at: datetime, wanted: Wanted) -> datetime | None:
    if wanted is Wanted.BY_NAME:
        return None
    return ends_at + timedelta(minutes=_LONGER_MINUTES.get(wanted, 0))


def idle_end(kept: Kept, limit: Limit | None) -> datetime:
    """Until when the machines stay on without a job that wants them."""
    wanted = kept.idle_since + timedelta(minutes=kept.policy.minutes)
    if kept.policy.until is not None:
        wanted = max(wanted, kept.policy.until)
    if limit is None:
        return wanted
    return min(wanted, kept.idle_since + timedelta(minutes=limit.value))


def counted_until(kept: Kept, limit: Limit | None, *, is_named: bool) -> datetime | None:
    """Until when machines stay on at most while somebody waits for them; None: nobody can say."""
    return left_until(kept, limit, Wanted.BY_NAME if is_named else Wanted.NEXT)


def stays_s(policy: IdlePolicy, limit: Limit | None) -> float:
    """The same of machines that a job is still to have: the seconds after it.

    One that names them keeps them for as long as it waits: that is not in it.
    """
    minutes = policy.minutes + NEXT_MINUTES
    return 60.0 * (minutes if limit is None else min(minutes, limit.value))


def backstop_minutes(policy: IdlePolicy, limit: Limit | None, idle_since: datetime | None) -> int:
    """Idle minutes after which the backend itself is to end the machines, later than the portal."""
    minutes = policy.minutes
    if policy.until is not None and idle_since is not None:
        wanted = (policy.until - idle_since).total_seconds() / 60
        minutes = max(minutes, round(wanted + 0.5))
    if limit is not None:
        minutes = min(minutes, limit.value)
    return minutes + BACKSTOP_MARGIN_MINUTES


def longer_backstop(told: int, limit: Limit | None, idle: timedelta) -> int:
    """The backend's own stop for a cluster that is wanted beyond its policy, from what it was told.

    It changes only once the margin is half gone, so that the backend is not told each second.
    """
    idle_minutes = round(idle.total_seconds() / 60)
    if told - idle_minutes > BACKSTOP_MARGIN_MINUTES // 2:
        return told
    minutes = idle_minutes + BACKSTOP_MARGIN_MINUTES
    return minutes if limit is None else min(minutes, limit.value + BACKSTOP_MARGIN_MINUTES)
