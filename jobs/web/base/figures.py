"""Figures of machines as text: per cent, bytes, spans and hours, names, tops of axes. Pure."""

from __future__ import annotations

import re

_UNIT = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TENTHS_BELOW = 10
_SPANS = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))
_DAY_S = 86_400
_TENTH, _LEAST_TOP = 0.1, 0.001
_THOUSAND = 1000
_NODE_ID = re.compile("([^<]*)<([^>]*)>")


def percent(value: float | None) -> str:
    """Format a percentage as "37 %"; as a dash if it is unknown."""
    return "–" if value is None else f"{value:.0f} %"


def amount(count: float | None) -> str:
    """Format a number of bytes in the usual unit: "980 B", "1.5 GiB", "80 GiB"."""
    if count is None:
        return "–"
    unit = 0
    while count >= _UNIT and unit < len(_UNITS) - 1:
        count, unit = count / _UNIT, unit + 1
    has_tenths = unit and count < _TENTHS_BELOW
    return f"{count:.1f} {_UNITS[unit]}" if has_tenths else f"{count:.0f} {_UNITS[unit]}"


def rate(count: float | None) -> str:
    """Format a number of bytes per second."""
    return "–" if count is None else f"{amount(count)}/s"


def span(seconds: float) -> str:
    """Format a length of time in one unit: "90 s", "20 min", "5 h", "3 d"."""
    for below_s, unit_s, word in _SPANS:
        if seconds < below_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{seconds / _DAY_S:.0f} d"


def round_top(highest: float) -> float:
    """Return a round number of bytes at or above `highest`, for the top of an axis."""
    unit = 1.0
    while highest / unit >= _UNIT:
        unit *= _UNIT
    steps = (1, 2, 4, 8, 10, 20, 40, 80, 100, 200, 400, 800, _UNIT)
    return unit * next(step for step in steps if step >= highest / unit)


def hours(value: float | None) -> str:
    """Format hours, with more decimals the fewer they are, so that little is not shown as 0."""
    if value is None:
        return "?"
    if not value:
        return "0"
    decimals = 1 if value >= 1 else 2 if value >= _TENTH else 3
    return f"{value:,.{decimals}f}"


def round_above(highest: float) -> float:
    """Return the first of 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, ... at or above `highest`."""
    unit = _LEAST_TOP
    while unit * 10 < highest:
        unit *= 10
    return next(unit * step for step in (1, 2, 4, 6, 8, 10) if unit * step >= highest)


def plain(value: float) -> str:
    """Format a number without needless decimals: "2,500", "0.05"."""
    return f"{round(value, 6):,.10g}"


def short_name(node_id: str) -> str:
    """Return the label of a node, without the part that makes its id unique."""
    match = _NODE_ID.match(node_id)
    return (match[1] or match[2]) if match else node_id


def count(number: int) -> str:
    """Format a count: "2,500"."""
    return f"{number:,}"


def count_of(number: int, word: str) -> str:
    """Format a count with its word: "1 actor", "2,500 actors"."""
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def mean_time(seconds: float | None) -> str:
    """Format a mean time: "25 µs", "1.25 s", "3,123 s"; a dash if unknown.

    It has three digits, or those of its whole seconds from 1,000 s.
    """
    if seconds is None:
        return "–"
    shown = float(f"{seconds:.3g}")  # 0.9996 is a whole second
    if shown >= _THOUSAND:
        return f"{seconds:,.0f} s"
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if shown * factor >= 1:
            return f"{shown * factor:.3g} {unit}"
    return f"{shown * 1e6:.3g} µs"
