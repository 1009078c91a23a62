"""The time that a job may run: its request, its extensions, and the administrators' limits."""

from __future__ import annotations

from dataclasses import dataclass

# How long before its time limit a job's page announces it; of a short job, in its last quarter.
WARN_BEFORE_S = 600


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that any job gets, and the owner of this limit."""

    value: int
    set_by: str  # "project rl", "this installation"


def smaller(of_project: int | None, of_installation: int | None, slug: str) -> Limit | None:
    """Return the limit that applies: the smaller one. None: there is none."""
    both = ((of_installation, "this installation"), (of_project, f"project {slug}"))
    limits = [Limit(value, set_by) for value, set_by in both if value]
    return min(limits, key=lambda limit: limit.value, default=None)


def walltime_s(requested_s: int | None, extended_s: int, limit: Limit | None) -> int | None:
    """Return the seconds that one attempt may run; None: there is no limit.

    A job without a request gets the limit. Nothing goes beyond the limit, also of what was
    requested or added before it was set.
    """
    wanted = None if requested_s is None else requested_s + extended_s
    if limit is None:
        return wanted
    return limit.value if wanted is None else min(wanted, limit.value)


def most_extension_s(requested_s: int | None, extended_s: int, limit: Limit | None) -> int | None:
    """Return the seconds by which the walltime can still grow, not below 0; None: no limit."""
    if requested_s is None:
        return 0
    return None if limit is None else max(0, limit.value - requested_s - extended_s)


def should_warn(ran_s: float, walltime: int) -> bool:
    """Whether the end is so near that a warning is due."""
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
