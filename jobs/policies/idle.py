"""Decisions about a warm cluster while no job is on it. Pure: a snapshot and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from jobs.policies.limits import Limit

# Of a cluster whose job says nothing about it.
DEFAULT_MINUTES = 10
# The backend's own stop comes so much later than the portal's: it is for a portal that is away.
BACKSTOP_MARGIN_MINUTES = 30


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """A request for the end of a warm cluster. `until`: a user keeps it at least so long."""

    minutes: int = DEFAULT_MINUTES
    then: Literal["stop", "down"] = "down"
    down_after: int | None = None
    until: datetime | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> IdlePolicy:
        """Invert `to_dict`; a missing key has its default."""
        until, minutes = content.get("until"), content.get("minutes")
        return cls(
            minutes=DEFAULT_MINUTES if minutes is None else minutes,
            then=content.get("then", "down"),
            down_after=content.get("down_after"),
            until=datetime.fromisoformat(until) if until else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to the form stored with the cluster; values that are not set are left out."""
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
    """A decision to leave it as it is until `until` (None: until a user ends it)."""

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
    kept: Kept, limit: Limit | None, now: datetime, *, is_named: bool = False
) -> Wait | SwitchOff | TakeDown:
    """Return what is due with a warm cluster at `now`.

    As long as a waiting job names it (`is_named`), its idleness does not end it. `limit`, in
    minutes, holds all the same for machines that are on. What is switched off costs little, and may
    be a user's work: its policy alone decides.
    """
    policy = kept.policy
    if kept.stopped_at is not None:
        if policy.down_after is None or is_named:
            return Wait(None)
        gone_at = kept.stopped_at + timedelta(minutes=policy.down_after)
        if now < gone_at:
            return Wait(gone_at)
        return TakeDown(f"It was switched off for {policy.down_after} min.")
    ends_at = _last_end(kept, limit) if is_named else idle_end(kept, limit)
    if ends_at is None or now < ends_at:
        return Wait(ends_at)
    idle = round((now - kept.idle_since).total_seconds() / 60)
    reason = f"No job was on it for {idle} min."
    return SwitchOff(reason) if policy.then == "stop" else TakeDown(reason)


def idle_end(kept: Kept, limit: Limit | None) -> datetime:
    """Return until when the machines stay on without a job that names them."""
    wanted = kept.idle_since + timedelta(minutes=kept.policy.minutes)
    if kept.policy.until is not None:
        wanted = max(wanted, kept.policy.until)
    last = _last_end(kept, limit)
    return wanted if last is None else min(wanted, last)


def _last_end(kept: Kept, limit: Limit | None) -> datetime | None:
    """Return until when an administrator lets machines stay on without a job; None: for ever."""
    return None if limit is None else kept.idle_since + timedelta(minutes=limit.value)


def backstop_minutes(policy: IdlePolicy, limit: Limit | None, idle_since: datetime | None) -> int:
    """Return the idle minutes after which the backend ends the machines, later than the portal."""
    minutes = policy.minutes
    if policy.until is not None and idle_since is not None:
        wanted = (policy.until - idle_since).total_seconds() / 60
        minutes = max(minutes, round(wanted + 0.5))
    if limit is not None:
        minutes = min(minutes, limit.value)
    return minutes + BACKSTOP_MARGIN_MINUTES


def longer_backstop(current_minutes: int, limit: Limit | None, idle: timedelta) -> int:
    """Return the backend's new stop for a cluster that is wanted beyond its policy.

    It changes only once half of the margin is used, so that the backend is not called each second.
    """
    idle_minutes = round(idle.total_seconds() / 60)
    if current_minutes - idle_minutes > BACKSTOP_MARGIN_MINUTES // 2:
        return current_minutes
    minutes = idle_minutes + BACKSTOP_MARGIN_MINUTES
    return minutes if limit is None else min(minutes, limit.value + BACKSTOP_MARGIN_MINUTES)
