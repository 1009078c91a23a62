"""The query of the job table's address: filters, order, and links that change one of them."""

from __future__ import annotations

from django.http import QueryDict

from jobs.actions.projects.saved_views import kept_query
from jobs.errors import InvalidViewError
from jobs.readers.job_filter import REASONS, JobFilter, moment_in
from jobs.readers.job_pages import SORT_WORDS, JobOrder
from jobs.statuses import JobKind, JobStatus


def filter_of(query: QueryDict) -> JobFilter:
    """Return the filter in the address; unknown values are left out."""
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
        since=_moment(query, "since"),
        until=_moment(query, "until"),
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
