"""How long a job may run: what it asks for, what was added, what an administrator allows."""

from __future__ import annotations

from dataclasses import dataclass

# When those who watch a job are told that its time ends; of a short one, in its last quarter.
WARN_BEFORE_S = 600


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that any job gets, and who says so."""

    value: int
    set_by: str  # "project rl", "this installation"


def smaller(of_project: int | None, of_installation: int | None, slug: str) -> Limit | None:
    """The limit that counts: the smaller one. None: there is none."""
    both = ((of_installation, "this installation"), (of_project, f"project {slug}"))
    limits = [Limit(value, set_by) for value, set_by in both if value]
    return min(limits, key=lambda limit: limit.value, default=None)


def walltime_s(asked_s: int | None, extended_s: int, limit: Limit | None) -> int | None:
    """Seconds that one attempt may run; None: as long as it likes.

    A job that asks for nothing gets the limit. Nothing goes beyond the limit, also of what was
    asked for or added before it was set.
    """
    wanted = None if asked_s is None else asked_s + extended_s
    if limit is None:
        return wanted
    return limit.value if wanted is None else min(wanted, limit.value)


def most_extension_s(asked_s: int | None, extended_s: int, limit: Limit | None) -> int | None:
    """Seconds by which the walltime can still grow; None: without end. Negative never."""
    if asked_s is None:
        return 0
    return None if limit is None else max(0, limit.value - asked_s - extended_s)


def should_warn(ran_s: float, walltime: int) -> bool:
    """Whether the end is so near that it is told."""
    return ran_s >= walltime - min(WARN_BEFORE_S, walltime / 4)


def shown_s(seconds: float) -> str:
    """Format a duration, to the second: "2 h 30 min", "1 min 30 s", "0 s"."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds_left = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds_left, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def shown_minutes_s(seconds: float) -> str:
    """Format a measured time: to the minute, or to the second below one minute."""
    return shown_s(round(seconds / 60) * 60 if seconds >= 60 else seconds)  # noqa: PLR2004
