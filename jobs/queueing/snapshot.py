"""The queue as a plan sees it: the rows of this moment as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from django.db.models import FilteredRelation, Q

from jobs.errors import BackendError
from jobs.ground import clock
from jobs.limits import duration_limit
from jobs.models import Cluster, Job, Project
from jobs.models.startable_jobs import startable_jobs
from jobs.policies.limits import Limit as MostOf
from jobs.policies.limits import walltime_s
from jobs.queueing.capacity import capacity_of
from jobs.queueing.epochs import epoch_s
from jobs.queueing.holders import AROUND_RUN_S, ActiveJob, Holders
from jobs.queueing.limits import PoolLimits, RequestedResources, backend_key, group_key
from jobs.queueing.new_jobs import NewJobs
from jobs.queueing.queued_rows import QueuedRow, QueuedRows
from jobs.queueing.usage import shares_of, used_by_persons
from jobs.queueing.warm_clusters import NamedClusters, stopped_clusters
from jobs.queueing.warm_requests import fingerprints_of_queued, naming_jobs
from jobs.scheduling.limits import JOBS, Shape
from jobs.scheduling.snapshot import Preemption, QueuedJob, Snapshot
from jobs.spending import budget_blocks
from jobs.statuses import ACTIVE_STATUSES, ClusterStatus, WaitReason

# The columns of a job with machines that decide whether it may be preempted.
_GIVES_WAY = ("status", "preemptible", "preempted_by_id", "fingerprint", "request_options__cluster")
_TIMES = ("duration_s", "extended_s", "group_limit")


def load_snapshot(
    backends: Iterable[str] = (),
    rows: QueuedRows | None = None,
    new_jobs: NewJobs | None = None,
) -> Snapshot:
    """Load the queued jobs, the running jobs and the limits of both.

    `backends` are included also if no job runs or waits there. `rows` is the reader's cache.
    `new_jobs` are included as if they were submitted now.
    """
    return _Loader(clock.now(), backends, rows or QueuedRows(), new_jobs).snapshot()


class _Loader:
    """A loader of one snapshot."""

    def __init__(
        self,
        now: datetime,
        backends: Iterable[str],
        rows: QueuedRows,
        new_jobs: NewJobs | None,
    ) -> None:
        self._now, self._now_s, self._rows = now, now.timestamp(), rows
        self._new_jobs = new_jobs
        self._pool_limits = PoolLimits.load()
        for name in backends:
            self._pool_limits.ask_for_backend(name)
        projects = {project.pk: project for project in Project.objects.all()}
        self._most = {pk: duration_limit(project) for pk, project in projects.items()}
        self._weights = {pk: project.share_weight for pk, project in projects.items()}
        self._problems: dict[str, str] = {}

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        active = list(self._active())
        startable = self._rows.read(startable_jobs(self._now), self._pool_limits.columns)
        naming, fingerprints = naming_jobs(), {}
        if (new := self._new_jobs) is not None:
            startable = {**startable, **new.rows(self._pool_limits.columns, self._now_s)}
            naming, fingerprints = [*naming, *new.naming()], new.fingerprints()
        named = NamedClusters.load(naming, self._pool_limits)
        queued = tuple(self._queued(startable, named))
        there = Cluster.objects.existing().exclude(status=ClusterStatus.STOPPED)
        holders = Holders(self._pool_limits, self._now_s, named)
        running = tuple(holders.count(active, there))
        self._ask_backends()
        warm = (*holders.warm, *stopped_clusters(self._pool_limits, named))
        reused = {each.fingerprint for each in warm}
        runs = ((job.requested, job.begin_s, job.ends_s) for job in active)
        persons = used_by_persons(runs, self._pool_limits, self._now_s)
        pools = {job.shape.pool for job in queued}
        return Snapshot(
            queued,
            running,
            self._pool_limits.limits,
            problems=self._problems,
            barred={
                project_id: (WaitReason.BUDGET, sentence)
                for project_id, sentence in budget_blocks(self._now).items()
            },
            shares=shares_of(queued, persons, self._weights),
            persons=persons,
            patience_s={pool: self._pool_limits.patience_of(pool) for pool in pools},
            # A job that is stopped there frees nothing: it would go on with the next one for ever.
            preemption={
                pool: Preemption()
                if pool in holders.stuck
                else self._pool_limits.preemption_of(pool)
                for pool in pools
            },
            warm=warm,
            fingerprints={**fingerprints_of_queued(reused), **fingerprints} if reused else {},
            stuck=frozenset(holders.stuck),
            now_s=self._now_s,
        )

    def _queued(self, rows: Mapping[int, QueuedRow], named: NamedClusters) -> Iterator[QueuedJob]:
        known: dict[int, tuple[Shape, int, MostOf | None]] = {}
        for pk, row in rows.items():
            requested = row.requested
            # Most jobs request the same as others: what follows from it is looked up.
            alike = known.get(id(requested))
            if alike is None:
                shape, rank = (
                    self._pool_limits.shape_of(requested),
                    self._pool_limits.rank_of(requested.queue_name),
                )
                alike = known[id(requested)] = shape, rank, self._most.get(requested.project_id)
            shape, rank, most = alike
            if (cluster := named.of_jobs.get(pk)) is not None:
                shape = named.shape_for(pk, requested, self._pool_limits)
            if requested.group_name:
                self._limit_group(requested, row.group_limit)
            lasts_s = walltime_s(row.requested_s, row.extended_s, most)
            # By place: names would take a third of the time of all of this.
            yield QueuedJob(
                pk,
                shape,
                row.priority,
                requested.project_id,
                requested.user_id,
                rank,
                row.since_s,
                None if lasts_s is None else lasts_s + AROUND_RUN_S,
                cluster,
                row.has_claim,
                row.preempted_by or 0,
            )

    def _active(self) -> Iterator[ActiveJob]:
        """Yield all jobs that hold machines, or will again without being queued."""
        # By the names of statuses: so an index finds them among all jobs.
        rows = Job.objects.in_status(*sorted(ACTIVE_STATUSES)).annotate(
            now=FilteredRelation("attempts", condition=Q(attempts__ended_at=None)),
            run_since_s=epoch_s("now__run_started_at"),
            there_since_s=epoch_s("now__created_at"),
        )
        attempt = ("run_since_s", "there_since_s", "now__cluster_id")
        columns = ("pk", *attempt, *_GIVES_WAY, *_TIMES, *self._pool_limits.columns)
        for row in rows.order_by("pk").values_list(*columns):
            pk, run_since_s, there_since_s, cluster_id, *more = row
            status, preemptible, by, fingerprint, named, requested_s, extended_s, limit, *rest = (
                more
            )
            requested = RequestedResources(*rest)
            self._pool_limits.shape_of(requested)
            if requested.group_name:
                self._limit_group(requested, limit)
            # Between two attempts a job holds no machines, but will again.
            there_since_s = there_since_s or self._now_s
            begin_s = run_since_s or there_since_s
            walltime = walltime_s(requested_s, extended_s, self._most.get(requested.project_id))
            ends_s = None
            if walltime is not None:
                ends_s = self._bound_s(max(there_since_s + AROUND_RUN_S, begin_s) + walltime)
            of_now = (there_since_s, begin_s, ends_s, cluster_id)
            yield ActiveJob(
                pk, requested, *of_now, status, preemptible, by, fingerprint, named or ""
            )

    def _limit_group(self, requested: RequestedResources, limit: int) -> None:
        caps = self._pool_limits.limits[group_key(requested)].caps
        caps[JOBS] = min(caps.get(JOBS, limit), limit)

    def _bound_s(self, ends_s: float) -> float:
        """Return when the machines of a job that may run until `ends_s` count as free.

        If the job is late, its delay is doubled until the time is in the future. Otherwise a
        reservation would expect its machines at any moment.
        """
        late_s = AROUND_RUN_S
        while ends_s <= self._now_s:
            ends_s += late_s
            late_s *= 2
        return ends_s

    def _ask_backends(self) -> None:
        for key, limit in self._pool_limits.limits.items():
            if key.startswith(backend_key("")):
                limit.caps.update(self._capacity_of(limit.name))

    def _capacity_of(self, backend_name: str) -> dict[str, float]:
        """Return the backend's capacity; nothing where it has a problem, which is kept."""
        try:
            return capacity_of(backend_name)
        except BackendError as error:
            # Its jobs wait; those of other backends go on.
            self._problems[backend_name] = error.message
            return {}
