"""Check the queue of a job, and limits that the job could never meet."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.admission.checked_spec import Checked
from jobs.models import Project, User
from jobs.models.queue import DEFAULT_QUEUE
from jobs.policies.job_request import JobRequest
from jobs.queueing.limits import PoolLimits, RequestedResources
from jobs.scheduling.amounts import counted, most_at_once
from jobs.scheduling.limits import GPUS, JOBS, NODES, Limit, LimitKind, Shape, gpus_of
from monarch_client.spec import JobSpec, SpecCode
from monarch_client.spec.accelerators import leaves_accelerators_open

Problem = tuple[str, SpecCode, str]

_WHOSE = {
    LimitKind.QUEUE: "queue {}",
    LimitKind.PROJECT: "project {}",
    LimitKind.PERSON: "{}",
    LimitKind.POOL: "pool {}",
}


def queue_problems(project: Project, user: User, checked: Checked) -> Iterator[Problem]:
    """Return (path, code, message) of each problem."""
    pool_limits, spec, backend_name = PoolLimits.load(), checked.spec, checked.backend_name
    name = spec.portal.queue
    queue = pool_limits.queues.get(name)
    if queue is None and name != DEFAULT_QUEUE:
        known = ", ".join(sorted({*pool_limits.queues, DEFAULT_QUEUE}))
        message = f"portal.queue: There is no queue {name}; there are: {known}."
        yield "portal.queue", SpecCode.UNKNOWN_QUEUE, message
        return
    pool = queue.pool if queue else None
    if pool is not None and pool.backend_name != backend_name:
        message = (
            f"portal.queue: Queue {name} has machines of {pool.backend_name} only; the job goes "
            f"to {backend_name}."
        )
        yield "portal.queue", SpecCode.UNKNOWN_QUEUE, message
        return
    shape = pool_limits.shape_of(_requested(project, user, checked.request))
    limits = [pool_limits.limits[key] for key in shape.limits]
    yield from _never_fits(shape, limits)
    yield from _not_counted(spec, limits)


def _requested(project: Project, user: User, request: JobRequest) -> RequestedResources:
    return RequestedResources(
        project_id=project.pk,
        user_id=user.pk,
        queue_name=request.queue_name,
        backend_name=request.backend_name,
        num_nodes=request.num_nodes,
        gpu_type=request.gpu_type,
        gpu_count=request.gpu_count,
    )


def _never_fits(shape: Shape, limits: list[Limit]) -> Iterator[Problem]:
    for limit in limits:
        what = limit.never_has(shape.demand)
        # The size of a backend changes, and the backend checks it.
        if what is None or limit.kind not in _WHOSE:
            continue
        whose = _WHOSE[limit.kind].format(limit.name)
        path = "num_nodes" if what == NODES else "portal.queue"
        cap = limit.caps[what]
        has = f"has {counted(what, cap)} at once"
        most = has if limit.kind == LimitKind.POOL else most_at_once(what, cap)
        needed = "" if what == JOBS else f"Needs {counted(what, shape.amount(what))}; "
        message = f"{path}: {needed}{whose} {most}."
        yield path, SpecCode.OVER_LIMIT, message


def _not_counted(spec: JobSpec, limits: list[Limit]) -> Iterator[Problem]:
    """Refuse a machine type alone where GPUs are limited: only its cloud knows its GPUs."""
    counting = [limit for limit in limits if limit.kind in _WHOSE and _counts_gpus(limit)]
    if not counting or not leaves_accelerators_open(spec.resources):
        return
    limit = counting[0]
    path, whose = "resources.instance_type", _WHOSE[limit.kind].format(limit.name)
    message = (
        f"{path}: GPUs of {whose} are limited, and an instance type alone does not show how many "
        "it has. Add them, such as `accelerators: H100:8`; for a machine without GPUs write "
        "`cpus` and `memory` instead."
    )
    yield path, SpecCode.MISSING, message


def _counts_gpus(limit: Limit) -> bool:
    return any(what == GPUS or what.startswith(gpus_of("")) for what in limit.caps)
