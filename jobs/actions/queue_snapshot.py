"""The queue as a plan sees it: the rows of this moment as plain values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Field, FilteredRelation, Func, Q, QuerySet

from jobs import clock
from jobs.actions.kept_clusters import kept_clusters, named_clusters, wish_of
from jobs.actions.queue_machines import Machines, machines_of, nodes_of
from jobs.actions.queue_places import Asked, Places, backend_key, group_key
from jobs.actions.use_accounts import shares_of, used_by_persons
from jobs.backends import registry
from jobs.disk_space import shortage
from jobs.errors import BackendError
from jobs.limits import duration_limit
from jobs.models import Cluster, Job, Project
from jobs.models.job import TAKES_KEPT
from jobs.policies.limits import Limit as MostOf
from jobs.policies.limits import walltime_s
from jobs.scheduling.limits import JOBS, NODES, Shape
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot
from jobs.spending import budget_blocks
from jobs.statuses import FINAL_STATUSES, ClusterStatus, JobStatus, WaitReason

# What a job holds its machines for beside the time of `run`: their start, its set-up, its end.
AROUND_RUN_S = 600.0

# Of a job that has machines: what says whether they may be taken from it.
_GIVES_WAY = ("status", "preemptible", "preempted_by_id", "spec__portal__cluster")
_TIMES = ("duration_s", "extended_s", "group_limit")
# Moments as numbers: to read a hundred thousand as datetimes takes longer than all else of a row.
# A field of no type: what the database gives is a float, and need not be made one for each row.
_CREATED_S: Func = Func(
    "created_at", template="EXTRACT(EPOCH FROM %(expressions)s)::float8", output_field=Field()
)


def load_snapshot(backends: Iterable[str] = ()) -> Snapshot:
    """The queue, what runs, and what limits both, as the database has them now.

    `backends` are counted also while nobody runs or waits there.
    """
    return _Loader(clock.now(), backends).snapshot()


@dataclass(frozen=True, slots=True)
class _Active:
    """A job that has left the queue and not ended; from when to when it holds machines at most."""

    job_id: int
    asked: Asked
    begin_s: float
    ends_s: float | None
    cluster_id: int | None
    status: str
    preemptible: bool
    preempted_by: int | None
    names_cluster: bool

    @property
    def is_over(self) -> bool:
        """Its last attempt has ended, and it is about to be moved on."""
        return self.cluster_id is None and self.status != JobStatus.RECOVERING


class _Loader:
    """Reads once, for one moment."""

    def __init__(self, now: datetime, backends: Iterable[str] = ()) -> None:
        self._now, self._now_s = now, now.timestamp()
        self._places = Places.load()
        for name in backends:
            self._places.ask_for_backend(name)
        projects = {project.pk: project for project in Project.objects.all()}
        self._most = {pk: duration_limit(project) for pk, project in projects.items()}
        self._weights = {pk: project.share_weight for pk, project in projects.items()}
        self._problems: dict[str, str] = {}

    def snapshot(self) -> Snapshot:
        """Everything that a plan may look at."""
        active = list(self._active())
        startable = Job.objects.startable(self._now)
        wishes = {job.pk: wish_of(job) for job in startable.filter(TAKES_KEPT)}
        queued = tuple(self._queued(startable, wishes))
        self._count_quotas(active)
        running = tuple(self._count_machines(active))
        runs = ((job.asked, job.begin_s, job.ends_s) for job in active)
        persons = used_by_persons(runs, self._places, self._now_s)
        pools = {job.shape.pool for job in queued}
        return Snapshot(
            queued,
            running,
            self._places.limits,
            problems=self._problems,
            barred={
                project_id: (WaitReason.BUDGET, sentence)
                for project_id, sentence in budget_blocks(self._now).items()
            },
            shares=shares_of(queued, persons, self._weights),
            persons=persons,
            patience_s={pool: self._places.patience_of(pool) for pool in pools},
            preemption={pool: self._places.preemption_of(pool) for pool in pools},
            kept=tuple(kept_clusters()) if wishes else (),
            named=named_clusters(),
            now_s=self._now_s,
        )

    def _queued(self, startable: QuerySet[Job], wishes: dict[int, Any]) -> Iterator[QueuedJob]:
        columns = (
            "pk",
            "priority",
            "since_s",
            "preempted_by_id",
            "is_owed",
            *_TIMES,
            *self._places.columns,
        )
        known: dict[tuple[Any, ...], tuple[Asked, Shape, int]] = {}
        own = len(columns) - len(self._places.columns)
        rows = startable.annotate(since_s=_CREATED_S).order_by("pk").values_list(*columns)
        for row in rows.iterator(chunk_size=20_000):
            pk, priority, since_s, by, is_owed, asked_s, extended_s, group_limit = row[:own]
            # Of most jobs others have asked for the same: what follows from it is looked up.
            key = row[own:]
            alike = known.get(key)
            if alike is None:
                asked = Asked(*key)
                alike = asked, self._places.shape_of(asked), self._places.rank_of(asked.queue_name)
                known[key] = alike
            asked, shape, rank = alike
            if asked.group_name:
                self._limit_group(asked, group_limit)
            yield QueuedJob(
                job_id=pk,
                shape=shape,
                priority=priority,
                project_id=asked.project_id,
                person_id=asked.user_id,
                rank=rank,
                since_s=since_s,
                duration_s=self._lasts_s(asked.project_id, asked_s, extended_s),
                wish=wishes.get(pk),
                is_owed=is_owed,
                stopped_for=by or 0,
            )

    def _active(self) -> Iterator[_Active]:
        """All jobs that hold machines, or will again without waiting in the queue."""
        rows = Job.objects.exclude(status__in=[*FINAL_STATUSES, JobStatus.QUEUED]).annotate(
            now=FilteredRelation("attempts", condition=Q(attempts__ended_at=None))
        )
        attempt = ("now__run_started_at", "now__created_at", "now__cluster_id")
        columns = ("pk", *attempt, *_GIVES_WAY, *_TIMES, *self._places.columns)
        for row in rows.order_by("pk").values_list(*columns):
            pk, run_started_at, created_at, cluster_id, *more = row
            status, preemptible, by, named, asked_s, extended_s, limit, *rest = more
            asked = Asked(*rest)
            self._places.shape_of(asked)
            if asked.group_name:
                self._limit_group(asked, limit)
            # Between two attempts it holds nothing, but will.
            begin = run_started_at or created_at or self._now
            lasts_s = self._lasts_s(asked.project_id, asked_s, extended_s)
            ends_s = None if lasts_s is None else max(self._now_s, begin.timestamp() + lasts_s)
            of_now = (begin.timestamp(), ends_s, cluster_id)
            yield _Active(pk, asked, *of_now, status, preemptible, by, bool(named))

    def _limit_group(self, asked: Asked, limit: int) -> None:
        caps = self._places.limits[group_key(asked)].caps
        caps[JOBS] = min(caps.get(JOBS, limit), limit)

    def _lasts_s(self, project_id: int, asked_s: int | None, extended_s: int) -> float | None:
        """How long an attempt holds its machines at most."""
        most: MostOf | None = self._most.get(project_id)
        walltime = walltime_s(asked_s, extended_s, most)
        return None if walltime is None else walltime + AROUND_RUN_S

    def _count_quotas(self, active: Collection[_Active]) -> None:
        limits, prices = self._places.limits, self._places.prices
        sharing = Counter(job.cluster_id for job in active)
        for job in active:
            shape = self._places.shape_of(job.asked)
            shape = prices.of_running(shape, job.cluster_id, sharing[job.cluster_id])
            for limit in (limits[key] for key in shape.limits):
                if not limit.kind.is_machines:
                    limit.take(shape.demand)
                if limit.counts_money and shape.unpriced is not None:
                    limit.unpriced = job.job_id

    def _count_machines(self, active: Iterable[_Active]) -> Iterator[RunningJob]:
        """What holds machines: clusters that are on, whatever for, and jobs between two of them."""
        there = Cluster.objects.existing().exclude(status=ClusterStatus.STOPPED)
        self._count_backends(there)
        guests: dict[int, list[_Active]] = defaultdict(list)
        for job in active:
            if job.cluster_id is not None:
                guests[job.cluster_id].append(job)
            else:
                shape = self._places.shape_of(job.asked)
                self._take_machines(shape)
                begin_end = (job.ends_s, self._now_s)
                yield RunningJob(job.job_id, shape, *begin_end, is_leaving=job.is_over)
        for cluster in machines_of(there, self._places.columns):
            shape = self._places.shape_of(cluster.asked)
            self._take_machines(shape, but=backend_key(shape.backend_name))
            yield self._on(cluster, guests.get(cluster.pk, []))

    def _on(self, cluster: Machines, guests: list[_Active]) -> RunningJob:
        """What is on a cluster, under the number of who came there last."""
        asked = cluster.asked
        alone = guests[0] if len(guests) == 1 else None
        is_stopping = alone is not None and alone.status == JobStatus.STOPPING
        is_last = not cluster.is_reusable and (is_stopping or not guests)
        is_idle = not guests and cluster.idle_since is not None
        is_switched_off = is_idle and cluster.status == ClusterStatus.STOPPING
        is_asked = cluster.release_requested_at is not None
        is_stuck = self._is_stuck(cluster)
        is_leaving = (is_last or is_switched_off or is_asked) and not is_stuck
        is_wanted = bool(cluster.idle_policy.get("until"))  # somebody has asked to keep it longer
        is_left = is_idle and cluster.status == ClusterStatus.UP
        may_go = is_left and not (is_asked or is_leaving or is_wanted)
        may = (
            alone is not None
            and not is_stopping
            and not alone.names_cluster
            and self._places.may_be_stopped(asked, says_so=alone.preemptible)
        )
        return RunningJob(
            job_id=alone.job_id if alone else cluster.last_job_id,
            shape=self._places.prices.of_running(self._places.shape_of(asked), cluster.pk),
            ends_s=None if is_stuck else self._free_at(cluster, guests, is_leaving=is_leaving),
            began_s=cluster.began_at.timestamp(),
            project_id=asked.project_id,
            rank=self._places.rank_of(asked.queue_name),
            is_preemptible=may,
            is_leaving=is_leaving,
            stopped_for=(cluster.preempted_by_id or 0) if is_leaving else 0,
            counts_in_quotas=alone is not None,
            cluster=cluster.name,
            kept=cluster.name if may_go else "",
        )

    def _is_stuck(self, cluster: Machines) -> bool:
        """Whether giving its machines back has failed for too long to count on it."""
        asked_at = cluster.release_requested_at
        return asked_at is not None and self._now_s - asked_at.timestamp() >= AROUND_RUN_S

    def _take_machines(self, shape: Shape, *, but: str = "") -> None:
        limits = self._places.limits
        for key in shape.limits:
            if limits[key].kind.is_machines and key != but:
                limits[key].take(shape.demand)

    def _count_backends(self, there: QuerySet[Cluster]) -> None:
        used, kept = nodes_of(there), nodes_of(there.exclude(idle_since=None))
        for name in [each for each in self._places.limits if each.startswith(backend_key(""))]:
            limit = self._places.limits[name]
            capacity = self._capacity_of(limit.name)
            if capacity is not None:
                limit.caps[NODES] = float(capacity)
            limit.used[NODES] = limit.used.get(NODES, 0.0) + used.get(limit.name, 0)
            limit.kept = kept.get(limit.name, 0)

    def _capacity_of(self, backend_name: str) -> int | None:
        """Nodes; None without a limit, or where the backend has a problem, which is kept."""
        if why := shortage():
            self._problems[backend_name] = why
            return None
        try:
            return registry.get(backend_name).capacity_nodes()
        except BackendError as error:
            # Its jobs wait; those of other backends go on.
            self._problems[backend_name] = error.message
            return None

    def _free_at(
        self, cluster: Machines, guests: list[_Active], *, is_leaving: bool
    ) -> float | None:
        """When a cluster's machines are free at the latest."""
        if is_leaving:
            return self._now_s + AROUND_RUN_S
        idle = timedelta(minutes=cluster.idle_policy.get("minutes") or 0).total_seconds()
        waits_s = idle if cluster.is_reusable else 0.0
        if cluster.idle_since is not None:
            return max(self._now_s, cluster.idle_since.timestamp() + waits_s)
        bounded = [guest.ends_s for guest in guests if guest.ends_s is not None]
        return max(bounded) + waits_s if bounded and len(bounded) == len(guests) else None
