"""The task contexts of a job: tasks by name, actors, objects of hosts, and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from jobs.permissions import Actor
from jobs.readers.tasks import job_tasks
from jobs.web.base.figures import count_of
from jobs.web.jobs.hosts_tab import number_in
from monarch_client.wire.task_groups import task_groups
from monarch_client.wire.tasks import ContextActor, TaskContext, TaskCount

# Of a job with a context on each of many nodes.
MOST_SHOWN = 10
# Names of all contexts that are shown, and as many actors.
MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row of a table, with the query that finds its lines in the log; "" if it has none."""

    row: TaskCount | ContextActor
    query: str


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """The tasks of one function, and the rows of their own names."""

    key: str
    total: NamedRow
    rows: list[NamedRow]


@dataclass(frozen=True, slots=True)
class ShownContext:
    """A context with a summary in text, and its rows."""

    context: TaskContext
    summary: str
    groups: list[ShownGroup]
    shown_tasks: int
    actors: list[NamedRow]

    @property
    def tasks_left_out(self) -> int:
        """Return the number of names that are not shown."""
        return self.context.tasks_left_out + len(self.context.tasks) - self.shown_tasks

    @property
    def actors_left_out(self) -> int:
        """Return the number of actors that are not shown."""
        return self.context.actors_left_out + len(self.context.actors) - len(self.actors)

    @property
    def key(self) -> str:
        """Return its place in the page, the same as long as it is there."""
        return f"{self.context.rank}-{self.context.name}"


def tasks_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the view; `query` may choose an attempt."""
    attempt = number_in(query, "attempt")
    found = job_tasks(actor, slug, job_id, attempt)
    shown = found.contexts[:MOST_SHOWN]
    room = MOST_ROWS // max(1, len(shown))
    return {
        "found": found,
        "contexts": [_shown(each, attempt, room) for each in shown],
        "contexts_left_out": found.left_out + len(found.contexts) - len(shown),
        "is_final": found.is_final,
    }


def _shown(context: TaskContext, attempt: int | None, room: int) -> ShownContext:
    # The lines of a named actor begin with its own name instead.
    named = {each.kind for each in context.actors if each.name}
    tasks = context.tasks[:room]
    groups = [
        ShownGroup(
            f"{context.rank}-{context.name}-{place}",
            _task_row(group.total, named, attempt, has_names=bool(group.rows)),
            [_task_row(each, named, attempt) for each in group.rows],
        )
        for place, group in enumerate(task_groups(tasks))
    ]
    actors = [
        NamedRow(each, _log_query(f"({each.name or each.kind}.", attempt))
        for each in context.actors[:room]
    ]
    return ShownContext(context, _summary(context), groups, len(tasks), actors)


def _task_row(
    row: TaskCount, named: set[str], attempt: int | None, *, has_names: bool = False
) -> NamedRow:
    # The lines of tasks with names of their own begin with these.
    has_lines = _has_lines(row, named) and not has_names
    return NamedRow(row, _log_query(f"({row.name},", attempt) if has_lines else "")


def _has_lines(row: TaskCount, named: set[str]) -> bool:
    return bool(row.name) and row.name.rpartition(".")[0] not in named


def _log_query(find: str, attempt: int | None) -> str:
    return urlencode({"find": find} if attempt is None else {"find": find, "attempt": attempt})


def _summary(context: TaskContext) -> str:
    """Describe a context in one line."""
    states = ("running", "pending", "finished", "failed", "cancelled")
    totals = {state: sum(getattr(row, state) for row in context.tasks) for state in states}
    tasks = ", ".join(f"{total:,} {state}" for state, total in totals.items() if total)
    living = sum(each.state == "alive" for each in context.actors)
    return "; ".join(
        [tasks or "no tasks", count_of(living, "actor"), count_of(context.objects, "object")]
    )
