"""Pools and limits of jobs, as plain values made of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.models import Cluster, Job, Pool, Queue, Quota, User
from jobs.models.pool import DAY_S, WEEK_S
from jobs.queueing.prices import Prices
from jobs.scheduling.limits import (
    GPUS,
    JOBS,
    NODES,
    USD_PER_HOUR,
    Amounts,
    Limit,
    LimitKind,
    Shape,
    gpus_of,
)
from jobs.scheduling.snapshot import Preemption

# The columns of a job that make a `RequestedResources`, in its order.
REQUEST_COLUMNS = (
    "project_id",
    "submitted_by_id",
    "queue_name",
    "backend_name",
    "num_nodes",
    "gpu_type",
    "gpu_count",
    "group_name",
)
# The same where a quota limits money: jobs then also differ by their price key.
PRICED = (*REQUEST_COLUMNS, "price_key")


class RequestedResources(NamedTuple):
    """The requested resources of a job. A tuple: a pass looks one up for each job."""

    project_id: int
    user_id: int
    queue_name: str
    backend_name: str
    num_nodes: int
    gpu_type: str = ""
    gpu_count: int = 0
    group_name: str = ""
    price_key: str = ""

    @classmethod
    def of(cls, job: Job) -> RequestedResources:
        """Return the requested resources of a row."""
        return cls(*(getattr(job, name) for name in REQUEST_COLUMNS))

    def with_machines_of(self, whole: RequestedResources | Cluster) -> RequestedResources:
        """Return the requested resources of the same job on a whole cluster."""
        machines = {name: getattr(whole, name) for name in ("num_nodes", "gpu_type", "gpu_count")}
        return self._replace(**machines)

    @property
    def amounts(self) -> Amounts:
        """The amounts that a start of the job uses."""
        return ((JOBS, 1.0), *node_amounts(self.num_nodes, self.gpu_type, self.gpu_count))

    @property
    def units(self) -> float:
        """The GPUs, or the nodes of a job without GPUs: usage counts their hours."""
        return float(self.gpu_count or self.num_nodes)


def node_amounts(num_nodes: int, gpu_type: str, gpu_count: int) -> Amounts:
    """Return the amounts of `num_nodes` nodes with `gpu_count` GPUs in total."""
    nodes, gpus = (NODES, float(num_nodes)), float(gpu_count)
    return (nodes, (GPUS, gpus), (gpus_of(gpu_type), gpus)) if gpu_count else (nodes,)


@dataclass(slots=True)
class PoolLimits:
    """Current queues, pools and quotas, with the limits that were requested so far."""

    queues: Mapping[str, Queue]
    quotas: list[Quota]
    prices: Prices = field(default_factory=Prices)
    limits: dict[str, Limit] = field(default_factory=dict)
    _shapes: dict[RequestedResources, Shape] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    @classmethod
    def load(cls) -> PoolLimits:
        """Load queues and quotas, with the names that messages need."""
        queues = load_queues()
        quotas = list(
            Quota.objects.select_related("project", "user", "queue", "pool").order_by("pk")
        )
        return cls(queues, quotas, Prices.load(quotas))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a job that make a `RequestedResources` here."""
        return PRICED if self.prices.are_counted else REQUEST_COLUMNS

    def rank_of(self, queue_name: str) -> int:
        """Return the rank of a queue; 0, as for the default queue, if it was deleted."""
        queue = self.queues.get(queue_name)
        return queue.rank if queue else 0

    def shape_of(self, requested: RequestedResources) -> Shape:
        """Return the shape of all jobs with this request; create its limits."""
        shape = self._shapes.get(requested)
        if shape is None:
            pool = pool_of(self.queues.get(requested.queue_name), requested.backend_name)
            shape = Shape(
                pool=pool,
                backend_name=requested.backend_name,
                num_nodes=requested.num_nodes,
                demand=requested.amounts,
                limits=tuple(self._limits_of(requested)),
                units=requested.units,
            )
            if self.counts_money(shape):
                shape = self.prices.of_waiting(shape, requested.price_key)
            self._shapes[requested] = shape
        return shape

    def counts_money(self, shape: Shape) -> bool:
        """Whether a limit of the shape counts what an hour costs."""
        return any(self.limits[key].counts_money for key in shape.limits)

    def patience_of(self, pool: str) -> float:
        """Return the seconds after which a job precedes jobs of its project with more priority."""
        there = self._pool(pool)
        return float(there.patience_s if there else DAY_S)

    def half_life_of(self, pool: str) -> float:
        """Return the seconds after which usage of the pool counts half."""
        there = self._pool(pool)
        return float(there.half_life_s if there else WEEK_S)

    def preemption_of(self, pool: str) -> Preemption:
        """Return the preemption rules of the pool."""
        there = self._pool(pool)
        if there is None:
            return Preemption()
        return Preemption(there.reclaim, there.preempts_by_rank)

    def may_be_stopped(self, requested: RequestedResources, *, says_so: bool) -> bool:
        """Whether a job may be preempted, by itself or by its queue."""
        queue = self.queues.get(requested.queue_name)
        return says_so or (queue is not None and queue.preemptible)

    def _pool(self, key: str) -> Pool | None:
        pools = (queue.pool for queue in self.queues.values() if queue.pool is not None)
        return next((pool for pool in pools if pool_key(pool.name) == key), None)

    def _limits_of(self, requested: RequestedResources) -> Iterator[str]:
        queue = self.queues.get(requested.queue_name)
        pool = queue.pool if queue else None
        for quota in self.quotas:
            if quota.pool_id is not None and (pool is None or quota.pool_id != pool.pk):
                continue
            if _holds(quota, requested, queue):
                yield self._quota_limit(quota, requested)
        if requested.group_name:
            key = group_key(requested)
            self.limits.setdefault(key, Limit(LimitKind.GROUP, requested.group_name, {}))
            yield key
        if pool is not None:
            yield self._pool_limit(pool, requested)
        yield self.ask_for_backend(requested.backend_name)

    def ask_for_backend(self, name: str) -> str:
        """Return the key of the backend's limit; create the limit."""
        key = backend_key(name)
        if key not in self.limits:
            self.limits[key] = Limit(LimitKind.BACKEND, name, {})
        return key

    def _quota_limit(self, quota: Quota, requested: RequestedResources) -> str:
        key, kind, name = quota_key(quota, requested.user_id), LimitKind.PROJECT, str(quota.project)
        if quota.per_person or quota.user_id is not None:
            kind, name = LimitKind.PERSON, self._name_of(requested.user_id)
        elif quota.queue is not None:
            kind, name = LimitKind.QUEUE, quota.queue.name
        if key not in self.limits:
            own = dict(quota.own_part) if kind == LimitKind.PROJECT else {}
            # Machines can be borrowed. Money that is spent can not be reclaimed.
            own.pop(USD_PER_HOUR, None)
            words = _words(quota, kind, name)
            self.limits[key] = Limit(kind, words, dict(quota.caps), nominal=own, whose=name)
        return key

    def _pool_limit(self, pool: Pool, requested: RequestedResources) -> str:
        key = pool_key(pool.name)
        limit = self.limits.get(key)
        if limit is None:
            limit = self.limits[key] = Limit(LimitKind.POOL, pool.name, dict(pool.caps))
        if requested.gpu_count and any(what.startswith(f"{GPUS}:") for what in pool.caps):
            # A pool that limits some GPU types has no others.
            limit.caps.setdefault(gpus_of(requested.gpu_type), 0.0)
        return key

    def _name_of(self, user_id: int) -> str:
        if not self._names:
            self._names = dict(User.objects.values_list("pk", "username"))
        return self._names.get(user_id, str(user_id))


def load_queues() -> dict[str, Queue]:
    """Return all queues by name, with their pools."""
    return {queue.name: queue for queue in Queue.objects.select_related("pool")}


def pool_of(queue: Queue | None, backend_name: str) -> str:
    """Return the key of the pool that the jobs of a queue share on that backend."""
    if queue is None or queue.pool is None:
        return backend_key(backend_name)
    return pool_key(queue.pool.name)


def pool_key(name: str) -> str:
    """Return the key of a pool that an administrator made."""
    return f"pool:{name}"


def backend_key(name: str) -> str:
    """Return the key of all machines of a backend."""
    return f"backend:{name}"


def quota_key(quota: Quota, user_id: int) -> str:
    """Return the key of a quota; if it limits each person separately, the person's key."""
    of_person = quota.per_person or quota.user_id is not None
    return f"quota:{quota.pk}:{user_id}" if of_person else f"quota:{quota.pk}"


def group_key(requested: RequestedResources) -> str:
    """Return the key of a project's `portal.concurrency` group."""
    return f"group:{requested.project_id}:{requested.group_name}"


def _words(quota: Quota, kind: LimitKind, name: str) -> str:
    """Return the name of a quota in messages: its owner, and where it applies if restricted."""
    where = [f"project {quota.project}"] if kind == LimitKind.PERSON else []
    if quota.pool is not None:
        where.append(f"pool {quota.pool.name}")
    return f"{name} in {' and '.join(where)}" if where else name


def _holds(quota: Quota, requested: RequestedResources, queue: Queue | None) -> bool:
    if quota.queue_id is not None:
        return queue is not None and quota.queue_id == queue.pk
    of_person = quota.user_id in (None, requested.user_id)
    return quota.project_id == requested.project_id and of_person
