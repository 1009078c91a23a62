"""The words that a query of the job table may have. Pages leave others out; nothing saves them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime, timezone

from jobs.statuses import JobKind, JobStatus, StopReason, WaitReason
from monarch_client.spec.durations import seconds_in

REASONS = {
    **dict(WaitReason.choices),
    **{value: label for value, label in StopReason.choices if value != StopReason.COMPLETED},
}
SORT_NAMES = ("status", "name", "user", "priority", "nodes", "duration", "ended", "cost")
SORT_WORDS = ("", *SORT_NAMES, *(f"-{name}" for name in SORT_NAMES))

_WORDS: dict[str, Collection[str]] = {
    "status": JobStatus.values,
    "kind": JobKind.values,
    "reason": REASONS,
    "sort": SORT_WORDS,
    "pin": ("0", "1"),
}


def unknown_part(parts: Iterable[tuple[str, str]]) -> str:
    """Return what is wrong with the first part that no table knows; "" if all are known."""
    for key, value in parts:
        for word in value.split(",") if key == "status" else [value]:
            known = _WORDS.get(key)
            if known is not None and word and _spelled(key, word) not in known:
                return f"There is no {key} {word}; there are {', '.join(filter(None, known))}."
        if value and key in {"since", "until"} and not is_moment(value):
            return f"{key} must be an ISO time, or a duration such as 24h."
        if value and key in {"from", "to"} and not _is_day(value):
            return f"{key} must be a day, such as 2026-03-01."
    return ""


def is_moment(text: str) -> bool:
    """Whether a text names a time: ISO, or a duration before now."""
    return seconds_in(text) is not None or iso_moment(text) is not None


def iso_moment(text: str) -> datetime | None:
    """Return the time that an ISO text names, of UTC without a zone; None if it names none."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _spelled(key: str, word: str) -> str:
    return word.upper() if key == "reason" else word
