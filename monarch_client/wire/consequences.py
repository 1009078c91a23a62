"""The consequence of an action on a job in its present state, as pages and commands show it.

The one table of these texts: a job that waits has no machines to stop, and one that never started
has no log to lose.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch_client.wire.jobs import Job


class Asked(str, Enum):
    """An action on jobs that is explained before it is done."""

    CANCEL = "cancel"
    RERUN = "rerun"
    HOLD = "hold"
    DELETE = "delete"


# The states whose consequences differ. Others are statuses.
NEW, AGAIN, NEVER_STARTED, ENDED = "NEW", "AGAIN", "NEVER_STARTED", "ENDED"

_BESIDE = (
    "It has not ended: a second job of the same specification is queued, and both may run at once."
)
_MANY_BESIDE = "{count} have not ended: a second job of each is queued, and both may run at once."
_TOO_LATE = "It has machines already, and cannot be held. Cancel it, and run it again later."
_MANY_TOO_LATE = "{count} have machines already, and cannot be held."
_FIRST = "It has not ended, and is not deleted: cancel it first."
_MANY_FIRST = "{count} have not ended, and are not deleted: cancel them first."
_HAS_MACHINES = ("PROVISIONING", "SETTING_UP", "RUNNING", "RECOVERING", "STOPPING")
_OVER = "It has ended already."
_MANY_OVER = "{count} have ended already."

_KEPT, _MANY_KEPT = " The log is kept.", " The logs are kept."
_AGAIN = " The log is kept, and the job can be rerun."
_MANY_AGAIN = " The logs are kept, and the jobs can be rerun."
_FOR_GOOD = " This cannot be undone."

# The text about one job, and the one about `count` jobs with `nodes` in all.
Texts: TypeAlias = tuple[str, str]

_CANCEL: dict[str, Texts] = {
    NEW: (
        "It has not started: it has no machines and has cost nothing. It leaves the queue.",
        "{count} have not started: they have no machines and cost nothing. They leave the queue.",
    ),
    AGAIN: (
        "It waits to start again, and has no machines now. It leaves the queue." + _KEPT,
        "{count} wait to start again, and have no machines now. They leave the queue." + _MANY_KEPT,
    ),
    "PROVISIONING": (
        "The start of its {nodes} is stopped. Its program does not run.",
        "The start of the {nodes} of {count} jobs is stopped. Their programs do not run.",
    ),
    "SETTING_UP": (
        "Its setup on {nodes} is stopped, and its program does not run." + _KEPT,
        "The setup of {count} jobs on {nodes} is stopped. Their programs do not run." + _MANY_KEPT,
    ),
    "RUNNING": (
        "Its processes on {nodes} are stopped." + _AGAIN,
        "The processes of {count} jobs on {nodes} are stopped." + _MANY_AGAIN,
    ),
    "RECOVERING": (
        "It lost a node, and is not started again." + _AGAIN,
        "{count} lost a node, and are not started again." + _MANY_AGAIN,
    ),
    "STOPPING": (
        "It is being stopped already. It is not queued again.",
        "{count} are being stopped already. They are not queued again.",
    ),
    NEVER_STARTED: (_OVER, _MANY_OVER),
    ENDED: (_OVER, _MANY_OVER),
}
_WAITS_ON: Texts = (
    "It does not start before it is released. It keeps its position.",
    "{count} do not start before they are released. They keep their positions.",
)
_RUNS_AGAIN: Texts = (
    "Its specification is submitted again as a new job. This job stays as it is.",
    "The specifications of {count} ended jobs are submitted again as new jobs.",
)
_TEXTS: dict[Asked, dict[str, Texts]] = {
    Asked.CANCEL: _CANCEL,
    Asked.HOLD: {
        **dict.fromkeys((NEW, AGAIN), _WAITS_ON),
        **dict.fromkeys(_HAS_MACHINES, (_TOO_LATE, _MANY_TOO_LATE)),
        **dict.fromkeys((NEVER_STARTED, ENDED), (_OVER, _MANY_OVER)),
    },
    Asked.RERUN: {
        **dict.fromkeys((NEW, AGAIN, *_HAS_MACHINES), (_BESIDE, _MANY_BESIDE)),
        **dict.fromkeys((NEVER_STARTED, ENDED), _RUNS_AGAIN),
    },
    Asked.DELETE: {
        **dict.fromkeys((NEW, AGAIN, *_HAS_MACHINES), (_FIRST, _MANY_FIRST)),
        NEVER_STARTED: (
            "It never started, and has no log. Its specification and events are deleted."
            + _FOR_GOOD,
            "{count} never started, and have no logs. Their specifications and events are deleted."
            + _FOR_GOOD,
        ),
        ENDED: (
            "Its log, attempts and events are deleted, too." + _FOR_GOOD,
            "The logs, attempts and events of {count} jobs are deleted, too." + _FOR_GOOD,
        ),
    },
}


def state_of(job: Job) -> str:
    """Return the state of a job that decides what an action on it does."""
    if job.is_final:
        return ENDED if job.attempt_count else NEVER_STARTED
    if job.status == "QUEUED":
        return AGAIN if job.attempt_count else NEW
    return job.status


def consequence_of(action: Asked, job: Job) -> str:
    """Return what `action` does to `job`, as one or two sentences."""
    return _TEXTS[action][state_of(job)][0].format(nodes=_nodes([job]))


def consequences_of(action: Asked, jobs: Iterable[Job]) -> list[str]:
    """Return what `action` does to each of several jobs: a text for all in the same state."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(_TEXTS[action][state_of(job)][1], []).append(job)
    if len(groups) == 1 and len(group := next(iter(groups.values()))) == 1:
        return [consequence_of(action, group[0])]
    return [
        text.format(count=len(group), nodes=_nodes(group))
        if len(group) > 1
        else f"Job {group[0].id}: {consequence_of(action, group[0])}"
        for text, group in groups.items()
    ]


def _nodes(jobs: Iterable[Job]) -> str:
    count = sum(job.num_nodes for job in jobs)
    return "1 node" if count == 1 else f"{count} nodes"
