"""What jobs want of clusters that are kept: one by name, or any with just such machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from jobs.actions.queue_places import load_queues, pool_of
from jobs.models import Cluster, Job, Queue
from jobs.models.job import TAKES_KEPT
from jobs.policies.idle import Wanted
from jobs.policies.reuse import fingerprint
from jobs.scheduling.kept import Wish
from jobs.statuses import JobStatus, WaitReason

# Of a specification what a wish is made of. It may be long, and thousands may wait.
_COLUMNS = (
    "pk",
    "project_id",
    "num_nodes",
    "fingerprint",
    "queue_name",
    "backend_name",
    "spec__portal__port",
    "spec__portal__cluster",
    "spec__resources",
)


def takes_alike(spec: Mapping[str, Any], backend_name: str, num_nodes: int) -> str:
    """Of the machines that a job makes, if it also goes onto kept ones that are like them."""
    portal = spec.get("portal", {})
    if not portal.get("reuse") or portal.get("cluster"):
        return ""
    return fingerprint(spec, backend_name, num_nodes)


def wish_of(job: Job, queues: Mapping[str, Queue]) -> Wish:
    """What `job` asks for of clusters that are kept."""
    return Wish(
        project_id=job.project_id,
        num_nodes=job.num_nodes,
        port=port_of(job),
        wants_gpus=wants_gpus(job.spec.get("resources")),
        fingerprint=job.fingerprint,
        cluster=cluster_named(job),
        pool=pool_of(queues.get(job.queue_name), job.backend_name),
    )


def may_take_kept(job: Job) -> bool:
    """Whether it asks for a cluster that is kept, be it by name or by what it needs."""
    return bool(job.fingerprint or cluster_named(job))


def cluster_named(job: Job) -> str:
    """The one that it wants and no other; "" if it names none."""
    return job.spec.get("portal", {}).get("cluster") or ""


def wishes_of(jobs: QuerySet[Job], queues: Mapping[str, Queue]) -> dict[int, Wish]:
    """The same of all of `jobs` that ask for anything, by their numbers."""
    rows = jobs.filter(TAKES_KEPT).values_list(*_COLUMNS)
    return {
        pk: Wish(
            project_id=project_id,
            num_nodes=num_nodes,
            port=int(port or 0),
            wants_gpus=wants_gpus(resources),
            fingerprint=alike,
            cluster=cluster or "",
            pool=pool_of(queues.get(queue), backend),
        )
        for pk, project_id, num_nodes, alike, queue, backend, port, cluster, resources in (
            rows.iterator()
        )
    }


def waiting() -> QuerySet[Job]:
    """Jobs that wait, whatever for, and would go onto kept clusters; not those that are held."""
    queued = Q(status=JobStatus.QUEUED) & TAKES_KEPT
    return Job.objects.filter(queued | Q(status=JobStatus.RECOVERING), held=False)


def named_clusters() -> set[str]:
    """Those that queued jobs name: nobody has them stopped for others.

    Not those that a held job names: else holding one would keep machines for nothing.
    """
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(TAKES_KEPT, held=False)
    names = queued.filter(spec__portal__has_key="cluster").values_list("spec__portal__cluster")
    return {name for (name,) in names if name}


def who_wants(cluster: Cluster) -> Wanted:
    """Whether a job of its project that waits, and is not held, would go onto the cluster.

    Whatever it waits for, as long as it names it. One that asks for such machines can have others:
    where a spent budget keeps it back, it wants none of either. Jobs of other pools never go there.
    """
    queues = load_queues()
    pool = pool_of(queues.get(cluster.queue_name), cluster.backend_name)
    others = [
        name for name, queue in queues.items() if pool_of(queue, cluster.backend_name) != pool
    ]
    own = waiting().filter(project=cluster.project_id).exclude(queue_name__in=others)
    if own.filter(spec__portal__cluster=cluster.name).exists():
        return Wanted.BY_NAME
    alike = own.exclude(wait_reason=WaitReason.BUDGET).filter(fingerprint=cluster.fingerprint)
    if cluster.fingerprint and alike.exists():
        return Wanted.ALIKE
    return Wanted.BY_NOBODY


@dataclass(frozen=True, slots=True)
class Wants:
    """The same of all clusters at once: what projects want by name, and by which fingerprints."""

    named: frozenset[tuple[int, str, str]]
    alike: frozenset[tuple[int, str, str]]

    @classmethod
    def of_all(cls, wishes: Collection[Wish]) -> Wants:
        """From what each job wishes."""
        return cls(
            frozenset((each.project_id, each.pool, each.cluster) for each in wishes),
            frozenset((each.project_id, each.pool, each.fingerprint) for each in wishes),
        )

    def of(self, project_id: int, pool: str, name: str, fingerprint: str) -> Wanted:
        """Whether the cluster of that name is wanted."""
        if (project_id, pool, name) in self.named:
            return Wanted.BY_NAME
        is_alike = bool(fingerprint) and (project_id, pool, fingerprint) in self.alike
        return Wanted.ALIKE if is_alike else Wanted.BY_NOBODY


def port_of(job: Job) -> int:
    """The one that its runner uses."""
    return int(job.spec.get("portal", {}).get("port") or 0)


def wants_gpus(resources: Mapping[str, Any] | None) -> bool:
    """Whether `resources` ask for accelerators, in any of their choices."""
    first = resources or {}
    choices = [first, *(first.get("any_of") or []), *(first.get("ordered") or [])]
    return any(choice.get("accelerators") for choice in choices)
