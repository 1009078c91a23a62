"""The tasks of a context by function: a sweep may give each of its tasks a name of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monarch_client.wire.tasks import TaskCount


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """The tasks of one function: `total` of all, and `rows` by name, if they have names."""

    total: TaskCount
    rows: list[TaskCount]


def task_groups(counts: Iterable[TaskCount]) -> list[TaskGroup]:
    """Return the counts by function, in the order of their first tasks."""
    groups: dict[str, list[TaskCount]] = defaultdict(list)
    for each in counts:
        groups[each.function or each.name].append(each)
    return [_group(function, rows) for function, rows in groups.items()]


def _group(function: str, rows: list[TaskCount]) -> TaskGroup:
    if len(rows) == 1 and rows[0].name == function:
        return TaskGroup(rows[0], [])
    # Those that were cancelled may never have run.
    times = [(row.mean_seconds, row.finished + row.failed) for row in rows]
    known = [(mean, ran) for mean, ran in times if mean is not None and ran]
    ran = sum(count for _, count in known)
    total = replace(
        rows[0],
        name=function,
        function="",
        pending=sum(row.pending for row in rows),
        running=sum(row.running for row in rows),
        finished=sum(row.finished for row in rows),
        failed=sum(row.failed for row in rows),
        cancelled=sum(row.cancelled for row in rows),
        mean_seconds=sum(mean * count for mean, count in known) / ran if ran else None,
    )
    return TaskGroup(total, rows)
