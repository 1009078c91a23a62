"""Rows of the jobs that may start, read again only where they changed.

Between two passes over a deep queue few rows change. A process that makes one after the other
queries the versions of all rows, and reads the rows of new versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Func, QuerySet, TextField

from jobs.models import Job
from jobs.queueing.epochs import epoch_s
from jobs.queueing.limits import RequestedResources

# A job's number, and of this version of its row the transaction that wrote it and where it is
# (System Columns in PostgreSQL's manual): another text after every change, and the same without.
_VERSION: Func = Func(
    template="concat_ws(' ', {0}.id, {0}.xmin, {0}.ctid)".format('"jobs_job"'),
    output_field=TextField(),
)
_BETWEEN = ";"
_OWN = (
    "pk",
    "version",
    "priority",
    "since_s",
    "preempted_by_id",
    "has_claim",
    "duration_s",
    "extended_s",
    "group_limit",
    "wait_reason",
    "message",
)
# Rows in one answer of the database; numbers of jobs in one question.
_FETCHED_AT_ONCE = 20_000
_NAMED_AT_ONCE = 5000
# So many different wishes are remembered at least, also of jobs that have left.
_ALIKE_AT_LEAST = 1000


class QueuedRow(NamedTuple):
    """One of them. A tuple: there may be a hundred thousand."""

    version: str
    priority: int
    since_s: float
    preempted_by: int | None
    has_claim: bool
    requested_s: int | None
    extended_s: int
    group_limit: int
    wait_reason: str
    message: str
    requested: RequestedResources  # the same object for all that are alike


class QueuedRows:
    """A cache of the rows that one reader read last. Not thread-safe."""

    def __init__(self) -> None:
        self._columns: Sequence[str] = ()
        self.known: dict[int, QueuedRow] = {}
        self._alike: dict[tuple[Any, ...], RequestedResources] = {}

    def forget(self) -> None:
        """Forget all rows: the next read reads all."""
        self.known, self._alike = {}, {}

    def read(self, startable: QuerySet[Job], columns: Sequence[str]) -> dict[int, QueuedRow]:
        """Return the rows of `startable` by job number, oldest first.

        `columns` make a `RequestedResources`. A job that leaves the queue meanwhile may have a row
        or not.
        """
        if columns != self._columns:
            self._columns = columns
            self.forget()
        if len(self._alike) > _ALIKE_AT_LEAST + 2 * len(self.known):
            self.forget()
        if not self.known:
            return self._read_all(startable)
        # As one text: a hundred thousand rows of two columns would take ten times as long.
        found = startable.order_by().aggregate(all=StringAgg(_VERSION, _BETWEEN))["all"]
        versions = set(found.split(_BETWEEN)) if found else set()
        known = {pk: row for pk, row in self.known.items() if row.version in versions}
        new = sorted(_number(each) for each in versions.difference(map(_version, known.values())))
        if len(new) > len(known):
            return self._read_all(startable)
        for begin in range(0, len(new), _NAMED_AT_ONCE):
            known.update(self._rows(startable.filter(pk__in=new[begin : begin + _NAMED_AT_ONCE])))
        self.known = dict(sorted(known.items())) if new else known
        return self.known

    def _read_all(self, startable: QuerySet[Job]) -> dict[int, QueuedRow]:
        self.known = dict(self._rows(startable))
        return self.known

    def _rows(self, jobs: QuerySet[Job]) -> Iterator[tuple[int, QueuedRow]]:
        rows = jobs.annotate(version=_VERSION, since_s=epoch_s("created_at")).order_by("pk")
        own, alike = len(_OWN), self._alike
        for row in rows.values_list(*_OWN, *self._columns).iterator(chunk_size=_FETCHED_AT_ONCE):
            key = row[own:]
            # Most request the same as others.
            requested = alike.get(key)
            if requested is None:
                requested = alike[key] = RequestedResources(*key)
            yield row[0], QueuedRow._make((*row[1:own], requested))


_version = attrgetter("version")


def _number(version: str) -> int:
    return int(version.partition(" ")[0])
