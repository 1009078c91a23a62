"""Tables of a job's task contexts: tasks by name, actors, hosts, and the latest failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from monarch_client.cli.output import age, amount
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say, tell
from monarch_client.wire.task_groups import task_groups

if TYPE_CHECKING:
    from monarch_client.wire.task_groups import TaskGroup
    from monarch_client.wire.tasks import TaskContext, TaskContexts

# The page and REST have all of them.
MOST_CONTEXTS, MOST_ROWS = 4, 20


def show_tasks(found: TaskContexts) -> None:
    """Print the contexts of a job, for people."""
    for context in found.contexts[:MOST_CONTEXTS]:
        say("")
        say(_headline(context, is_over=found.is_over))
        _show(context)
    left_out = found.left_out + len(found.contexts[MOST_CONTEXTS:])
    if left_out:
        tell(f"{left_out} more task contexts: the job's page has them.")


def _headline(context: TaskContext, *, is_over: bool) -> str:
    state = "" if context.is_open and not is_over else ", which has ended"
    if context.is_silent:
        state = ", which is silent"
    where = f"node {context.rank}"
    if context.machine:
        where = f"{one_line(context.machine)}, outside of the job"
    who = f"Tasks of {where}, process {context.pid}{state}"
    return f"{who}: {context.objects} objects, reported {age(context.at)} ago"


def _show(context: TaskContext) -> None:
    _table(
        ["TASK", "PENDING", "RUNNING", "FINISHED", "FAILED", "CANCELLED", "MEAN"],
        [
            [
                _function(group),
                *map(str, (row.pending, row.running, row.finished, row.failed, row.cancelled)),
                "" if row.mean_seconds is None else f"{row.mean_seconds:.3g} s",
            ]
            for group in task_groups(context.tasks)
            for row in (group.total,)
        ],
        context.tasks_left_out,
    )
    _table(
        ["ACTOR", "CLASS", "STATE", "HOST", "PROCESS", "CALLS", ""],
        [
            [row.name, row.kind, row.state, row.host, _known(row.pid), str(row.calls), row.why]
            for row in context.actors
        ],
        context.actors_left_out,
    )
    _table(
        ["HOST", "PROCESSES", "OBJECTS", "BYTES", "ON DISK"],
        [
            [row.name, str(row.processes), str(row.objects), amount(row.bytes), _size(row.spilled)]
            for row in context.hosts
        ],
        context.hosts_left_out,
    )
    if context.failures:
        latest = context.failures[0]
        others = len(context.failures) - 1 + context.failures_left_out
        say(f"Latest of {others + 1} failures, {age(latest.at)} ago: {one_line(latest.error)}")


def _function(group: TaskGroup) -> str:
    """Return a function, and how many names its tasks have."""
    name = group.total.name or "(other names)"
    return f"{name} ({len(group.rows)} names)" if len(group.rows) > 1 else name


def _table(headers: Sequence[str], rows: list[list[str]], left_out: int) -> None:
    if rows:
        print_table(headers, rows[:MOST_ROWS])
    more = left_out + len(rows[MOST_ROWS:])
    if more:
        tell(f"{more} more rows: the job's page has them.")


def _known(value: Any) -> str:
    return "" if value is None else str(value)


def _size(count: int | None) -> str:
    return "" if count is None else amount(count)
