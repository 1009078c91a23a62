"""Reports of task contexts, frames of kind `tasks`: kept in the shape of `monarch_client.wire`.

A program may have another version of the client than the portal: unknown keys are dropped, and a
context that cannot be read is counted as left out. A frame is refused for its size alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import msgspec

from jobs.logs.lines import storable
from monarch_client.runner.vocabulary.frames import TASKS
from monarch_client.wire.tasks import MOST_COUNTED, ContextSummary

MOST_CONTEXTS = 64
MOST_TEXT_CHARS = 4000
_LISTS = ("tasks", "actors", "hosts", "failures")
MOST_ROWS = 200

# Other times cannot be shown in every time zone.
_EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST = datetime(3000, 1, 1, tzinfo=timezone.utc)

Mask = Callable[[str], str]


def what_is_wrong_with_report(frame: dict[str, Any]) -> str:
    """Describe what is wrong in a sentence; "" if nothing is. Rank and time were checked before."""
    contexts, left_out = frame.get("contexts"), frame.get("left_out")
    if type(contexts) is not list or len(contexts) > MOST_CONTEXTS:
        return f"its contexts are not a list of at most {MOST_CONTEXTS} ({TASKS})."
    if type(left_out) is not int or not 0 <= left_out <= MOST_COUNTED:
        return "its left_out is not a number."
    return ""


def kept_of(frame: dict[str, Any], mask: Mask) -> dict[str, Any]:
    """Return the stored form of a valid report, its texts masked."""
    found = [_kept(each, mask) for each in frame["contexts"]]
    contexts = [each for each in found if each is not None]
    left_out = frame["left_out"] + len(found) - len(contexts)
    return {"contexts": contexts, "left_out": min(MOST_COUNTED, left_out)}


def summary_of(context: Any) -> ContextSummary | None:
    """Return a reported or stored context, with times that can be shown; None: unreadable."""
    try:
        summary = msgspec.convert(context, ContextSummary)
    except (ValueError, OverflowError):  # also of half a character
        return None
    failures = [replace(each, at=_shown(each.at)) for each in summary.failures]
    return replace(summary, failures=failures)


def _shown(at: datetime) -> datetime:
    return max(_EARLIEST, min(_LATEST, at)).astimezone(timezone.utc)


def _kept(context: Any, mask: Mask) -> dict[str, Any] | None:
    """Return the stored form of a context; None if it cannot be read."""
    summary = summary_of(context)
    if summary is None:
        return None
    kept: dict[str, Any] = _masked(msgspec.to_builtins(summary), mask)
    for name in _LISTS:
        rows = kept[name]
        kept[name] = rows[:MOST_ROWS]
        left_out = kept[f"{name}_left_out"] + len(rows) - len(kept[name])
        kept[f"{name}_left_out"] = min(MOST_COUNTED, left_out)
    return kept


def _masked(value: Any, mask: Mask) -> Any:
    if type(value) is str:
        return storable(mask(value), MOST_TEXT_CHARS)
    if type(value) is list:
        return [_masked(each, mask) for each in value]
    if type(value) is dict:
        return {name: _masked(each, mask) for name, each in value.items()}
    return value
