"""The view of charts: the axis, its window and the style of all charts of a page, in its address.

The tab of a job and the comparison of runs share it; `js/chart_window.js` changes the address.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import Http404

from jobs.web.jobs.line_charts import Style, Window

TIME, STEP = "time", "step"
LOG = "log"
# Of an axis of time, whose addresses are in milliseconds and whose charts are in seconds.
_MS = 1000
# Milliseconds until the year 3000, and steps, have fewer.
_MOST_DIGITS = 16
_HIGHEST_PERCENT = 99
_NO_WINDOW: dict[str, None] = {"from": None, "to": None}
_NO_PLACE: dict[str, None] = {**_NO_WINDOW, "at": None}


@dataclass(frozen=True, slots=True)
class ChartView:
    """A view of charts: an axis, a window of it, and the marked position `at`, in its unit.

    `usual`: the axis of an address without one. `others`: the rest of the page's address.
    `smooth`: how much lines are smoothed, in per cent.
    """

    by: str
    usual: str
    window: Window | None = None
    at: float | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    smooth: int = 0
    is_log: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], usual: str, others: Mapping[str, Any]) -> ChartView:
        """Return the view of an address. Http404 for what is no number."""
        by = query.get("by", "")
        by = by if by in {TIME, STEP} else usual
        unit = unit_of(by)
        low, high = whole_number(query, "from"), whole_number(query, "to")
        at = whole_number(query, "at")
        window = None
        if low is not None and high is not None and low < high:
            window = Window(low / unit, high / unit)
        return cls(
            by,
            usual,
            window,
            None if at is None else at / unit,
            others,
            smooth=min(_HIGHEST_PERCENT, whole_number(query, "smooth") or 0),
            is_log=query.get("scale") == LOG,
        )

    @property
    def unit(self) -> int:
        """The number of units of the address in one of the axis."""
        return unit_of(self.by)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The ends of the window."""
        return (self.window.low, self.window.high) if self.window else None

    @property
    def style(self) -> Style:
        """The style of all lines."""
        return Style(self.smooth / 100, self.is_log)

    @property
    def parts(self) -> dict[str, Any]:
        """The names and values of the address."""
        known = {
            **self.others,
            "by": None if self.by == self.usual else self.by,
            "at": None if self.at is None else self.in_address(self.at),
            "smooth": self.smooth or None,
            "scale": LOG if self.is_log else None,
            **(self._ends(self.window) if self.window else {}),
        }
        return {name: value for name, value in known.items() if value is not None}

    @property
    def parts_without_smoothing(self) -> dict[str, Any]:
        """The parts of the address that the form for the smoothing keeps."""
        return {name: value for name, value in self.parts.items() if name != "smooth"}

    def query(self, **changes: Any) -> str:
        """Return the address of a changed view; None leaves a part out."""
        return query_of(self.parts | changes)

    @property
    def scale_query(self) -> str:
        """The address with the other scale of values."""
        return self.query(scale=None if self.is_log else LOG)

    @property
    def time_query(self) -> str:
        """The address of the same charts over time."""
        return self._over(TIME)

    @property
    def step_query(self) -> str:
        """The address of the same charts over steps."""
        return self._over(STEP)

    @property
    def all_query(self) -> str:
        """The address of the whole axis."""
        return self.query(**_NO_WINDOW)

    def links(self, shown: Window | None) -> list[tuple[str, str, str]]:
        """Return links that move the window that is shown: the label, the key and the address."""
        if shown is None:
            return []
        quarter = (shown.high - shown.low) / 4
        low, high = shown.low, shown.high
        moved = {
            ("Zoom in", "+"): Window(low + quarter, high - quarter),
            ("Zoom out", "-"): Window(max(0.0, low - 2 * quarter), high + 2 * quarter),
            ("Earlier", "["): Window(max(0.0, low - 2 * quarter), high - 2 * quarter),
            ("Later", "]"): Window(low + 2 * quarter, high + 2 * quarter),
        }
        links = [(*name, self.query(**self._ends(each))) for name, each in moved.items()]
        return [*links, ("All", "0", self.all_query)] if self.window else links[:1]

    def _over(self, by: str) -> str:
        if by == self.by:
            return self.query()
        return self.query(**_NO_PLACE, by=None if by == self.usual else by)

    def _ends(self, window: Window) -> dict[str, int]:
        most = 10**_MOST_DIGITS - 1
        low, high = math.floor(window.low * self.unit), math.ceil(window.high * self.unit)
        return {"from": min(most, low), "to": min(most, high)}

    def in_address(self, value: float) -> int:
        """Return a position in the unit of the address."""
        return round(value * self.unit)


def unit_of(by: str) -> int:
    """Return how many units of an address are one of the axis: a second has 1,000."""
    return _MS if by == TIME else 1


def query_of(parts: Mapping[str, Any]) -> str:
    """Return an address of its parts, without those that are None."""
    known = {name: value for name, value in parts.items() if value is not None}
    return urlencode(known, safe=",")


def whole_number(query: Mapping[str, str], name: str) -> int | None:
    """Return the whole number `name` in an address; None without one. Http404: it is no number."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        limit = f"a whole number of at most {_MOST_DIGITS} digits"
        raise Http404(f"{name} must be {limit}, not {text[:20]}.")
    return int(text)
