"""The query of the job table's address: filters, order, and links that change one of them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.http import QueryDict

from jobs.actions.projects.saved_views import kept_query
from jobs.errors import InvalidViewError
from jobs.readers.job_filter import REASONS, JobFilter, moment_in
from jobs.readers.job_pages import SORT_WORDS, JobOrder
from jobs.statuses import JobKind, JobStatus
from jobs.web.base.clocks import UTC, is_zone


def filter_of(query: QueryDict, zone: str = UTC) -> JobFilter:
    """Return the filter in the address; unknown values are left out.

    `from` and `to` are the first and the last day of the submission, in the address's `zone` or
    else in this one. They come before `since` and `until`.
    """
    kind, reason = query.get("kind", ""), query.get("reason", "").upper()
    return JobFilter(
        status=tuple(status for status in _list(query, "status") if status in JobStatus.values),
        kind=kind if kind in JobKind.values else "",
        reason=reason if reason in REASONS else "",
        gpu=_word(query, "gpu").upper(),
        labels=tuple(_list(query, "label")),
        q=_word(query, "q"),
        user=_word(query, "user"),
        name=_word(query, "name"),
        queue=_word(query, "queue"),
        backend=_word(query, "backend"),
        since=_midnight(query, "from", zone) or _moment(query, "since"),
        until=_midnight(query, "to", zone, days_later=1) or _moment(query, "until"),
    )


def order_of(query: QueryDict) -> JobOrder:
    """Return the order in the address; an unknown one is left out."""
    sort = query.get("sort", "")
    return JobOrder(sort=sort if sort in SORT_WORDS else "", pin=query.get("pin") == "1")


def changed(query: QueryDict, *, keep_cursor: bool = False, **changes: str | None) -> str:
    """Return the query with `changes`; None removes a key. A new filter has no cursor."""
    copy = query.copy()
    if not keep_cursor:
        copy.pop("cursor", None)
    for key, value in changes.items():
        copy.pop(key, None)
        if value is not None:
            copy[key] = value
    return copy.urlencode(safe=",")


def view_query_of(query: str) -> str:
    """Return the parts of a query that a view keeps; none if there are too many to save."""
    try:
        return kept_query(query)
    except InvalidViewError:
        return ""


def _word(query: QueryDict, key: str) -> str:
    # The database takes no NUL.
    return query.get(key, "").replace("\0", "").strip()


def _list(query: QueryDict, key: str) -> list[str]:
    words = (word for text in query.getlist(key) for word in text.split(","))
    return [word for each in words if (word := each.replace("\0", "").strip())]


def _moment(query: QueryDict, key: str) -> str:
    text = _word(query, key)
    return text if moment_in(text) is not None else ""


def _midnight(query: QueryDict, key: str, zone: str, *, days_later: int = 0) -> str:
    """Return when the day in the address begins, or the one so many days later; "" without one."""
    asked = query.get("zone", "")
    try:
        day = date.fromisoformat(query.get(key, "")) + timedelta(days=days_later)
        begin = datetime.combine(day, time(), ZoneInfo(asked if is_zone(asked) else zone))
        return begin.isoformat() if moment_in(begin.isoformat()) else ""
    except (ValueError, OverflowError):
        return ""
