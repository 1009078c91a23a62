"""The errors of a task context. An error of a task itself keeps its own type.

ContextError                     context_failed
├── ContextClosedError           context_closed     the context was closed
├── InfeasibleError              infeasible         no host can ever fit what was requested
├── PackagesError                packages_failed    packages of a task cannot be installed
├── TaskError                    task_failed        the task's error cannot be pickled
├── TaskCancelledError           task_cancelled     `cancel` ended the task
├── TaskLostError                task_lost          the task's process died on every try
├── ActorDiedError               actor_died         the actor's process has ended
├── ObjectLostError              object_lost        the object exists no longer
├── ResultTooLargeError          result_too_large   too large for the log of a cluster's job
├── JobNotFoundError             job_not_found      no job of the cluster has this id
├── ClusterJobError              cluster_job_failed a call on TPU slices has no result
├── NoTpuError                   no_tpu             there are no such TPU slices
└── GetTimeoutError              get_timeout        `get` waited for longer than its time-out
"""

from __future__ import annotations

from monarch_client.errors import ClientError


class ContextError(ClientError):
    """The task context cannot do this."""

    code = "context_failed"


class ContextClosedError(ContextError):
    """The context is closed: its tasks, actors and objects exist no longer."""

    code = "context_closed"


class InfeasibleError(ContextError, ValueError):
    """A request that no host can ever fit."""

    code = "infeasible"


class PackagesError(ContextError):
    """The packages of a runtime environment cannot be installed."""

    code = "packages_failed"


class TaskError(ContextError, RuntimeError):
    """The task failed with an error that cannot be sent to another process."""

    code = "task_failed"


class TaskCancelledError(ContextError):
    """The task was cancelled."""

    code = "task_cancelled"


class TaskLostError(ContextError):
    """The process of the task died, on every try."""

    code = "task_lost"


class ActorDiedError(ContextError):
    """The process of the actor has ended. Create a new actor to continue."""

    code = "actor_died"


class ObjectLostError(ContextError):
    """The object exists no longer: all of its references were deleted."""

    code = "object_lost"


class ResultTooLargeError(ContextError, ValueError):
    """The result of a function on TPU slices is too large to be returned."""

    code = "result_too_large"


class JobNotFoundError(ContextError, LookupError):
    """An id that no job has."""

    code = "job_not_found"


class ClusterJobError(ContextError):
    """The job of a call on TPU slices has ended without a result."""

    code = "cluster_job_failed"


class NoTpuError(ContextError):
    """A type of TPU slices that the cluster does not have."""

    code = "no_tpu"


class GetTimeoutError(ContextError, TimeoutError):
    """The values were not ready in time. The tasks go on: `cancel` ends them."""

    code = "get_timeout"
