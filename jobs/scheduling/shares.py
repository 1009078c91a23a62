"""Fair share: the past usage that still counts, and so the scheduling order.

Usage is in normalized hours (a unit is a GPU, or a node without GPUs). An hour that is
`h` hours back, `h` being the half-life, counts half: with the weight 2^(-age/h), an attempt with
`u` units from `a` to `b` hours ago (a > b) is worth the integral of that weight over its time,

    u * (h / ln 2) * (2^(-b/h) - 2^(-a/h)).

Exponential decay needs no history: a sum that was `v` some `t` hours ago is `v * 2^(-t/h)` now, and
what is added since is added to it. Slurm's fair share decays by the same half-life
(`PriorityDecayHalfLife`), but in steps and then turned into a factor; here the sum itself, divided
by the weight of its project, is what the queue compares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_HOUR_S = 3600.0
# The usage of a start before it has run: without it, starting would cost nothing yet.
PROMISE_S = _HOUR_S


@dataclass(frozen=True, slots=True)
class Account:
    """Decayed normalized hours, as they were at a time (seconds since the epoch)."""

    value: float
    at_s: float

    def carried_to(self, now_s: float, half_life_s: float) -> float:
        """Return the usage left at `now_s`; a clock that went back takes nothing away."""
        return self.value * _left_after(now_s - self.at_s, half_life_s)


def decayed_use(
    units: float, begin_s: float, end_s: float, *, now_s: float, half_life_s: float
) -> float:
    """Return the usage at `now_s` of `units` from `begin_s` to `end_s`, in normalized hours."""
    end_s = min(end_s, now_s)
    if end_s <= begin_s:
        return 0.0
    newest = _left_after(now_s - end_s, half_life_s)
    oldest = _left_after(now_s - begin_s, half_life_s)
    return units * half_life_s / math.log(2) * (newest - oldest) / _HOUR_S


def promised_use(units: float, remaining_s: float | None) -> float:
    """Return the usage charged beforehand for a job, in normalized hours: an hour's at most."""
    seconds = PROMISE_S if remaining_s is None else max(0.0, min(PROMISE_S, remaining_s))
    return units * seconds / _HOUR_S


def _left_after(age_s: float, half_life_s: float) -> float:
    return math.exp2(-max(0.0, age_s) / half_life_s)
