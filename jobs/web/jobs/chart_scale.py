"""The scale of a chart's values, linear or logarithmic, and the smoothing of its lines. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobs.web.jobs.charts import BOTTOM, TOP, Tick

_MARGIN = 0.05


# The least and the greatest powers of ten that a float holds.
_LEAST_POWER, _MOST_POWER = -323.0, 308.0


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of values, from a chart's bottom to its top; of their powers of ten if `is_log`."""

    low: float
    high: float
    is_log: bool = False

    def y(self, value: float) -> float:
        """Return the position of a value in the picture."""
        if not self.is_log:
            return self._y(value)
        return self._y(math.log10(value)) if value > 0 else BOTTOM

    def rows(self, say: Callable[[float | None], str]) -> list[Tick]:
        """Return the marks of the bottom, the middle and the top."""
        places = (self.low, (self.low + self.high) / 2, self.high)
        return [Tick(self._y(each), say(10**each if self.is_log else each)) for each in places]

    def _y(self, place: float) -> float:
        part = min(1.0, max(0.0, (place - self.low) / (self.high - self.low)))
        return round(BOTTOM - (BOTTOM - TOP) * part, 1)


def scale_of(values: Sequence[float], *, is_log: bool = False) -> Scale:
    """Return a scale that shows all values. It is linear if one of them has no logarithm."""
    lowest, highest = min(values), max(values)
    if is_log and lowest > 0:
        low, high = math.log10(lowest), math.log10(highest)
        margin = (high - low) * _MARGIN or 1.0
        return Scale(max(_LEAST_POWER, low - margin), min(_MOST_POWER, high + margin), is_log=True)
    margin = (highest - lowest) * _MARGIN or abs(highest) * _MARGIN or 1.0
    low = lowest - margin
    # What is never negative has no axis below 0.
    return Scale(max(0.0, low) if lowest >= 0 else low, highest + margin)


def smoothed(values: Sequence[float | None], weight: float) -> list[float | None]:
    """Return an exponential moving average of values, which starts at the first one.

    `weight` is that of the average so far, from 0 to below 1. Unknown values stay unknown.
    """
    shown: list[float | None] = []
    total = weights = 0.0
    for value in values:
        if value is None:
            shown.append(None)
            continue
        total = total * weight + value * (1 - weight)
        weights = weights * weight + (1 - weight)
        shown.append(total / weights)
    return shown
