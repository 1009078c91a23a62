"""The context that `get_job_context` returns, in a driver and in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monarch_client.context.api import TaskApi

_current: list[TaskApi] = []


def get_job_context() -> TaskApi:
    """Return the current context. RuntimeError: none was set.

    In a task it is the context of the driver that made the task.
    """
    if not _current:
        raise RuntimeError(
            "There is no job context. Call set_job_context(JobContext()) in the driver first."
        )
    return _current[0]


def set_job_context(context: TaskApi) -> None:
    """Make `context` the current one of this process."""
    _current[:] = [context]


def clear_job_context() -> None:
    """Let this process have no current context."""
    _current.clear()
