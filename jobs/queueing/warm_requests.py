"""What jobs want of clusters that are kept: one by name, or any with just such machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from jobs.errors import BackendError
from jobs.ground import clock
from jobs.limits import idle_limit
from jobs.models import Cluster, Job, Queue
from jobs.models.job import TAKES_KEPT
from jobs.models.startable_jobs import startable_jobs
from jobs.policies.idle import IdlePolicy, Wanted, stays_s
from jobs.policies.limits import Limit as MostOf
from jobs.queueing.capacity import capacity_of
from jobs.queueing.limits import load_queues, pool_of
from jobs.scheduling.kept import Wish
from jobs.statuses import ClusterStatus, JobStatus, WaitReason

# Of a specification what a wish is made of. It may be long, and thousands may wait.
_COLUMNS = (
    "pk",
    "project_id",
    "num_nodes",
    "fingerprint",
    "queue_name",
    "backend_name",
    "spec__portal",
    "spec__resources",
)


def wish_of(job: Job, queues: Mapping[str, Queue]) -> Wish:
    """What `job` asks for of clusters that are kept."""
    portal = job.spec.get("portal", {})
    return Wish(
        project_id=job.project_id,
        num_nodes=job.num_nodes,
        port=port_of(job),
        wants_gpus=wants_gpus(job.spec.get("resources")),
        fingerprint=job.fingerprint,
        cluster=cluster_named(job),
        pool=pool_of(queues.get(job.queue_name), job.backend_name),
        keeps_s=_keeps_s(portal, idle_limit(job.project)),
    )


def may_take_kept(job: Job) -> bool:
    """Whether it asks for a cluster that is kept, be it by name or by what it needs."""
    return bool(job.fingerprint or cluster_named(job))


def cluster_named(job: Job) -> str:
    """The one that it wants and no other; "" if it names none."""
    return job.spec.get("portal", {}).get("cluster") or ""


def wishes_of(
    jobs: QuerySet[Job],
    queues: Mapping[str, Queue],
    most_idle: Mapping[int, MostOf | None],
) -> dict[int, Wish]:
    """The same of all of `jobs` that ask for anything, by their numbers.

    `most_idle`: what administrators allow, by project.
    """
    found = {}
    rows = jobs.filter(TAKES_KEPT).values_list(*_COLUMNS)
    for pk, project_id, num_nodes, alike, queue, backend, portal, resources in rows.iterator():
        pool = pool_of(queues.get(queue), backend)
        found[pk] = Wish(
            project_id=project_id,
            num_nodes=num_nodes,
            port=int(portal.get("port") or 0),
            wants_gpus=wants_gpus(resources),
            fingerprint=alike,
            cluster=portal.get("cluster") or "",
            pool=pool,
            keeps_s=_keeps_s(portal, most_idle.get(project_id)),
        )
    return found


def _keeps_s(portal: Mapping[str, Any], limit: MostOf | None) -> float | None:
    """For how long a cluster stays on after a job at most; None: the job says nothing of it."""
    if not portal.get("reuse"):
        return None
    return stays_s(IdlePolicy.from_dict(portal.get("idle") or {}), limit)


def waiting() -> QuerySet[Job]:
    """Jobs that wait, whatever for, and would go onto kept clusters; not those that are held."""
    queued = Q(status=JobStatus.QUEUED) & TAKES_KEPT
    return Job.objects.filter(queued | Q(status=JobStatus.RECOVERING), held=False)


def who_wants(cluster: Cluster) -> Wanted:
    """Whether a job of its project that waits, and is not held, would go onto the cluster."""
    queues = load_queues()
    pool = pool_of(queues.get(cluster.queue_name), cluster.backend_name)
    wants = Wants.load(queues, waiting().filter(project=cluster.project_id))
    wanted = wants.of(cluster.project_id, pool, cluster.name, cluster.fingerprint)
    # Where nothing can start, nobody could use its machines.
    is_spared = wanted is not Wanted.ALIKE or _is_closed(cluster.backend_name)
    return wanted if is_spared or not _are_machines_short(cluster) else Wanted.NEXT


def _are_machines_short(cluster: Cluster) -> bool:
    """Whether somebody waits for machines of its backend and nothing else, as far as is told.

    Not one that the backend had none for, and that will go onto this cluster with its next try; nor
    one that names a cluster that is on: it waits for that one, which is busy.
    """
    of_backend = Job.objects.filter(backend_name=cluster.backend_name, held=False)
    its_own = Q(project=cluster.project_id, fingerprint=cluster.fingerprint)
    tried = of_backend.in_status(JobStatus.QUEUED).filter(wait_reason=WaitReason.BACKOFF)
    if tried.exclude(its_own).exists():
        return True
    off = Cluster.objects.filter(backend_name=cluster.backend_name, status=ClusterStatus.STOPPED)
    wants_machines = ~Q(spec__portal__has_key="cluster") | Q(
        spec__portal__cluster__in=list(off.values_list("name", flat=True))
    )
    told_so = startable_jobs(clock.now(), of_backend).filter(wait_reason__in=_FOR_MACHINES)
    return told_so.filter(wants_machines).exists()


@dataclass(frozen=True, slots=True)
class Wants:
    """What waiting jobs want, by project, pool, and name or fingerprint of a cluster.

    Whatever one waits for, as long as it names the cluster. One that asks for such machines can
    have others, and where a spent budget keeps it back, it wants none of either. Jobs of other
    pools never go there.
    """

    named: frozenset[tuple[int, str, str]]
    alike: frozenset[tuple[int, str, str]]

    @classmethod
    def load(cls, queues: Mapping[str, Queue], jobs: QuerySet[Job]) -> Wants:
        """Of those of `jobs` that ask for anything."""
        columns = ("project_id", "queue_name", "backend_name", "wait_reason", "fingerprint")
        rows = jobs.filter(TAKES_KEPT).order_by().values_list(*columns, "spec__portal__cluster")
        named: set[tuple[int, str, str]] = set()
        alike: set[tuple[int, str, str]] = set()
        for project_id, queue, backend, reason, machines, cluster in rows.distinct():
            pool = pool_of(queues.get(queue), backend)
            if cluster:
                named.add((project_id, pool, cluster))
            elif machines and reason != WaitReason.BUDGET:
                alike.add((project_id, pool, machines))
        return cls(frozenset(named), frozenset(alike))

    @property
    def names(self) -> frozenset[str]:
        """Of all clusters that are wanted by name. Not those that a held job names.

        Else holding a job would keep machines for nothing.
        """
        return frozenset(name for _, _, name in self.named)

    def of(self, project_id: int, pool: str, name: str, fingerprint: str) -> Wanted:
        """Whether the cluster of that name is wanted."""
        if (project_id, pool, name) in self.named:
            return Wanted.BY_NAME
        is_alike = (project_id, pool, fingerprint) in self.alike
        return Wanted.ALIKE if is_alike else Wanted.BY_NOBODY


def _is_closed(backend_name: str) -> bool:
    try:
        capacity_of(backend_name)
    except BackendError:
        return True
    return False


# What is said of a queued job that lacks nothing but machines.
_FOR_MACHINES = (WaitReason.CAPACITY, WaitReason.PREEMPTED)


def port_of(job: Job) -> int:
    """The one that its runner uses."""
    return int(job.spec.get("portal", {}).get("port") or 0)


def wants_gpus(resources: Mapping[str, Any] | None) -> bool:
    """Whether `resources` ask for accelerators, in any of their choices."""
    first = resources or {}
    choices = [first, *(first.get("any_of") or []), *(first.get("ordered") or [])]
    return any(choice.get("accelerators") for choice in choices)
