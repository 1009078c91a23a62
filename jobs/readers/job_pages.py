"""Pages of the job table: the numbers of their jobs, in the order that the reader chose.

Newest first, any page is as fast as the first, however many jobs there are. Other orders sort the
newest WINDOW jobs that match.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.db.models.expressions import Expression, OrderBy
from django.db.models.functions import Coalesce, Lower, Now

from jobs.errors import InvalidCursorError
from jobs.models import Attempt, Job
from jobs.policies import table_queries
from jobs.readers.job_filter import ID_DIGITS
from jobs.statuses import FINAL_STATUSES, JobStatus

WINDOW = 2_000
# For fewer jobs the database reads the newest of all, where an index of the filter finds rare ones.
_LEAST_READ = 51

_USD = Attempt.objects.filter(job=OuterRef("pk")).order_by().values("job").annotate(sum=Sum("usd"))
# What a table may be sorted by; a minus before the name reverses it.
SORTS: dict[str, tuple[Expression | F | Subquery, ...]] = {
    "status": (Case(*(When(status=s, then=Value(n)) for n, s in enumerate(JobStatus))),),
    "name": (Lower("name"),),
    "user": (F("submitted_by__username"),),
    "priority": (F("priority"),),
    "nodes": (F("gpu_count"), F("num_nodes")),
    # A queued job has no duration, even one whose earlier attempt has started.
    "duration": (
        Case(
            When(status=JobStatus.QUEUED, then=None),
            default=Coalesce(F("ended_at"), Now()) - F("started_at"),
        ),
    ),
    "ended": (F("ended_at"),),
    "cost": (Subquery(_USD.values("sum")),),
}
SORT_WORDS = table_queries.SORT_WORDS


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The order of a table: `sort` is one of SORT_WORDS, "" for newest first.

    `pin` puts jobs that have not ended on top.
    """

    sort: str = ""
    pin: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is newest first."""
        return not (self.sort or self.pin)


@dataclass(frozen=True, slots=True)
class JobPage:
    """The numbers of one page's jobs in order, and the cursors of the pages beside it."""

    numbers: list[int]
    next: str | None
    previous: str | None


def page_of(jobs: QuerySet[Job], order: JobOrder, cursor: str | None, limit: int) -> JobPage:
    """Return a page of `jobs`. InvalidCursorError: the cursor is not one of this order."""
    kind, value = _parse_cursor(cursor)
    if order.is_plain:
        if kind == "at":
            raise InvalidCursorError
        return _newest_first(jobs, kind, value, limit)
    if kind not in {"at", ""} or value > 2 * WINDOW:
        raise InvalidCursorError
    ids = _sorted(jobs, order).values_list("pk", flat=True)
    numbers = list(ids[value : value + limit + 1])
    return JobPage(
        numbers[:limit],
        next=_cursor("at", value + limit) if len(numbers) > limit else None,
        previous=_cursor("at", max(0, value - limit)) if value else None,
    )


def _newest_first(jobs: QuerySet[Job], kind: str, pivot: int, limit: int) -> JobPage:
    ids = jobs.values_list("pk", flat=True)
    count = max(limit + 1, _LEAST_READ)
    if kind == "before":
        found = list(ids.filter(pk__gt=pivot).order_by("pk")[:count])
        page, has_next, has_previous = found[:limit][::-1], bool(found), len(found) > limit
    else:
        if kind:
            ids = ids.filter(pk__lt=pivot)
        found = list(ids.order_by("-pk")[:count])
        page, has_next, has_previous = found[:limit], len(found) > limit, bool(kind and found)
    return JobPage(
        page,
        next=_cursor("after", page[-1]) if has_next else None,
        previous=_cursor("before", page[0]) if has_previous else None,
    )


def _sorted(jobs: QuerySet[Job], order: JobOrder) -> QuerySet[Job]:
    window = jobs.order_by("-pk").values("pk")[:WINDOW]
    keys: list[OrderBy | str] = []
    if order.pin:
        unfinished = jobs.exclude(status__in=FINAL_STATUSES).order_by("-pk").values("pk")
        window = window.union(unfinished[:WINDOW])
        is_over = Case(When(status__in=FINAL_STATUSES, then=Value(1)), default=Value(0))
        keys.append(is_over.asc())
    is_reversed = order.sort.startswith("-")
    # What has no value comes last, either way.
    keys += [
        key.desc(nulls_last=True) if is_reversed else key.asc(nulls_last=True)
        for key in SORTS.get(order.sort.removeprefix("-"), ())
    ]
    return Job.objects.filter(pk__in=window).order_by(*keys, "-pk")


def _cursor(kind: str, value: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{value}".encode()).decode()


def _parse_cursor(cursor: str | None) -> tuple[str, int]:
    """Return the kind and the value: after or before a number, or at a position; "" without one."""
    if not cursor:
        return "", 0
    try:
        text = base64.urlsafe_b64decode(cursor).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        raise InvalidCursorError from None
    kind, _, value = text.partition(":")
    known = kind in {"after", "before", "at"} and value.isdecimal() and len(value) < ID_DIGITS
    if not known:
        raise InvalidCursorError
    return kind, int(value)
