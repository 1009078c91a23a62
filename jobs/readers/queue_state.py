"""Queues, machines, quotas and shares as they are now, computed by the planner for one reader.

All users see queues and what of machines is in use; quotas and shares of their own projects
only, and jobs of others neither by name nor by number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db.models import Count, Q

from jobs.backends import registry
from jobs.models import Job, Pool, Project, Quota
from jobs.models.queue import DEFAULT_QUEUE
from jobs.permissions import Actor, projects_of
from jobs.queueing.current_pass import Plan, planned_now
from jobs.queueing.limits import PoolLimits, backend_key, pool_key, quota_key
from jobs.readers.expected_starts import ExpectedStart, expected_starts
from jobs.readers.queue_rows import AmountRow, place_words, share_row
from jobs.readers.visible_causes import visible_causes
from jobs.scheduling.amounts import counted
from jobs.scheduling.limits import JOBS, NODES, Limit
from jobs.scheduling.room import ending_within
from jobs.scheduling.snapshot import (
    Decision,
    QueuedJob,
    Refuse,
    Start,
    StaysQueued,
)
from jobs.statuses import JobStatus
from monarch_client.wire import queue as wire

PAGE = 50
_FIRST = (JOBS, NODES)


class QueueState:
    """One moment, read once: what `actor` may know of it."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    @cached_property
    def planned(self) -> Plan:
        """The plan of this moment."""
        return planned_now()

    @cached_property
    def _pool_limits(self) -> PoolLimits:
        return PoolLimits.load()

    @cached_property
    def _own(self) -> dict[int, Project]:
        return {project.pk: project for project in projects_of(self._actor)}

    def queues(self) -> list[wire.Queue]:
        """Return all queues, the highest rank first, with their jobs of all projects."""
        of_queue = Job.objects.unfinished().order_by().values("queue_name")
        queued = Q(status=JobStatus.QUEUED)
        numbers = {
            row["queue_name"]: row
            for row in of_queue.annotate(
                waiting=Count("pk", filter=queued & Q(held=False)),
                held=Count("pk", filter=queued & Q(held=True)),
                running=Count("pk", filter=~queued),
            )
        }
        rows = []
        # A queue may be gone while its last jobs are there.
        for name in {DEFAULT_QUEUE, *self._pool_limits.queues, *numbers}:
            queue = self._pool_limits.queues.get(name)
            there: Mapping[str, Any] = numbers.get(name, {})
            rows.append(
                wire.Queue(
                    name=name,
                    rank=self._pool_limits.rank_of(name),
                    pool=queue.pool.name if queue and queue.pool else "",
                    waiting=there.get("waiting", 0),
                    held=there.get("held", 0),
                    running=there.get("running", 0),
                    preemptible=queue is not None and queue.preemptible,
                )
            )
        return sorted(rows, key=lambda row: (-row.rank, row.name))

    def pools(self) -> list[wire.Place]:
        """Return pools by name, then the totals of backends, with what is in use of each."""
        snapshot = self.planned[0]
        queues: dict[str, list[str]] = defaultdict(list)
        for queue in self._pool_limits.queues.values():
            queues[queue.pool.name if queue.pool else ""].append(queue.name)
        rows = [
            self._place(pool_key(pool.name), pool, queues[pool.name])
            for pool in Pool.objects.order_by("name")
        ]
        for name in registry.names():
            limit = snapshot.limits.get(backend_key(name))
            rows.append(
                wire.Place(
                    kind="backend",
                    name=name,
                    backend=name,
                    amounts=[*_amounts(limit.caps if limit else {}, limit)],
                    kept=self._idle_nodes(name),
                    ending=self._ending_nodes(backend_key(name)),
                    problem=snapshot.problems.get(name, ""),
                    queues=[],
                    patience_s=int(self._pool_limits.patience_of(backend_key(name))),
                    half_life_s=int(self._pool_limits.half_life_of(backend_key(name))),
                    reclaim=False,
                    preempts_by_rank=False,
                )
            )
        return rows

    def _idle_nodes(self, backend_name: str) -> int:
        warm = self.planned[0].warm
        here = [each.shape for each in warm if each.is_on and not each.is_ending]
        return sum(shape.num_nodes for shape in here if shape.backend_name == backend_name)

    def _ending_nodes(self, key: str) -> int:
        """Return the nodes within a limit that are being given back."""
        return int(ending_within(key, NODES, self.planned[0].running))

    def _place(self, key: str, pool: Pool, queues: Iterable[str]) -> wire.Place:
        limit = self.planned[0].limits.get(key)
        return wire.Place(
            kind="pool",
            name=pool.name,
            backend=pool.backend_name,
            amounts=[*_amounts(pool.caps, limit)],
            kept=0,
            ending=self._ending_nodes(key),
            problem=self.planned[0].problems.get(pool.backend_name, ""),
            queues=sorted(queues),
            patience_s=pool.patience_s,
            half_life_s=pool.half_life_s,
            reclaim=pool.reclaim,
            preempts_by_rank=pool.preempts_by_rank,
        )

    def quotas(self, project: Project | None = None) -> list[wire.Quota]:
        """Return the quotas of queues and of the actor's projects; of `project` alone if named."""
        found = Quota.objects.select_related("project", "user", "queue", "pool").order_by("pk")
        if project is not None:
            found = found.filter(project=project)
        rows = [
            self._quota(quota)
            for quota in found
            if quota.project_id is None or quota.project_id in self._own
        ]
        return sorted(rows, key=lambda row: (row.queue, row.project, row.kind, row.user, row.id))

    def _quota(self, quota: Quota) -> wire.Quota:
        people = self._people(quota) if quota.per_person else []
        limit = self.planned[0].limits.get(quota_key(quota, quota.user_id or 0))
        amounts = _amounts(quota.caps, limit, quota.nominal)
        return wire.Quota(
            id=quota.pk,
            kind=_kind_of(quota),
            queue=quota.queue.name if quota.queue else "",
            project=quota.project.slug if quota.project else "",
            user=quota.user.get_username() if quota.user else "",
            pool=quota.pool.name if quota.pool else "",
            # The limit of each member has no usage in sum.
            amounts=[each.unused() if quota.per_person else each for each in amounts],
            people=people,
        )

    def _people(self, quota: Quota) -> list[wire.PersonUse]:
        """List the people who use anything of a quota for each person."""
        prefix = f"{quota_key(quota, 0).rpartition(':')[0]}:"
        found = (
            (limit.whose, _amounts(quota.caps, limit))
            for key, limit in self.planned[0].limits.items()
            if key.startswith(prefix)
        )
        return [
            wire.PersonUse(user=name, amounts=[*amounts])
            for name, amounts in sorted(found, key=lambda each: each[0])
            if any(each.used for each in amounts)
        ]

    def shares(self) -> list[wire.Share]:
        """Return the usage of projects by pool, least first; that of others as one."""
        by_place: dict[str, list[wire.Share]] = defaultdict(list)
        hidden: dict[str, list[float]] = defaultdict(list)
        for (pool, project_id), share in self.planned[0].shares.items():
            if project := self._own.get(project_id):
                row = share_row(pool, project.slug, share.used, share.weight)
                by_place[pool].append(row)
            else:
                hidden[pool].append(share.used)
        for pool, used in hidden.items():
            by_place[pool].append(share_row(pool, "", sum(used), projects=len(used)))
        rows: list[wire.Share] = []
        for pool in sorted(by_place):
            total = sum(row.used_hours for row in by_place[pool])
            ordered = sorted(by_place[pool], key=lambda row: (not row.project, row.counts_for or 0))
            rows += [
                replace(row, percent=100.0 * row.used_hours / total if total else 0.0)
                for row in ordered
            ]
        return rows

    @property
    def number_waiting(self) -> int:
        """Return the number of queued jobs of all projects."""
        return len(self.planned[1])

    def waiting(self, begin: int = 0, most: int = PAGE) -> list[wire.Turn]:
        """Return the queued jobs by pool, each pool in scheduling order."""
        snapshot, decisions = self.planned
        queued = {job.job_id: job for job in snapshot.queued}
        # Pools that share machines take turns in a plan: here each has its own list.
        decisions = sorted(decisions, key=lambda each: queued[each.job_id].shape.pool)
        positions: dict[str, int] = defaultdict(int)
        shown: list[tuple[int, QueuedJob]] = []
        whats: list[Decision] = []
        for number, decision in enumerate(decisions):
            job = queued[decision.job_id]
            positions[job.shape.pool] += 1
            if begin <= number < begin + most:
                shown.append((positions[job.shape.pool], job))
                whats.append(decision)
        jobs = Job.objects.select_related("submitted_by").in_bulk([job.job_id for _, job in shown])
        sentences = self._sentences(whats)
        starts = expected_starts((each.job_id for each in whats), self.planned)
        return [
            self._waiting(position, job, jobs, said, starts.get(job.job_id))
            for (position, job), said in zip(shown, sentences, strict=True)
        ]

    def _sentences(self, decisions: Sequence[Decision]) -> list[str]:
        waits = [each for each in decisions if isinstance(each, StaysQueued)]
        causes = iter(visible_causes(self._actor, [each.cause for each in waits]))
        return [
            next(causes).sentence if isinstance(each, StaysQueued) else _sentence(each)
            for each in decisions
        ]

    def _waiting(
        self,
        position: int,
        queued: QueuedJob,
        jobs: Mapping[int, Job],
        sentence: str,
        start: ExpectedStart | None,
    ) -> wire.Turn:
        job = jobs.get(queued.job_id)
        project = self._own.get(queued.project_id)
        kind, place = place_words(queued.shape.pool)
        row = wire.Turn(
            kind=kind,
            place=place,
            position=position,
            needs=", ".join(
                counted(what, amount) for what, amount in queued.shape.demand if _is_shown(what)
            ),
            since=datetime.fromtimestamp(queued.since_s, UTC),
            job_id=None,
            project="",
            name="",
            owner="",
            queue="",
            priority=None,
            sentence="",
            expected_at=start.at if start else None,
            basis=start.basis if start else "",
            latest_at=start.latest_at if start else None,
        )
        if job is None or project is None:
            return row
        return replace(
            row,
            job_id=job.pk,
            project=project.slug,
            name=job.name,
            owner=job.submitted_by.get_username(),
            queue=job.queue_name,
            priority=job.priority,
            sentence=sentence,
        )


def _kind_of(quota: Quota) -> str:
    if quota.queue_id is not None:
        return "queue"
    if quota.per_person:
        return "each_person"
    return "person" if quota.user_id is not None else "project"


def _amounts(
    caps: Mapping[str, float], limit: Limit | None, nominal: Mapping[str, float] | None = None
) -> list[AmountRow]:
    """Return the use of each limited amount; of nodes also where they are not limited."""
    used = limit.used if limit else {}
    names = sorted(caps, key=lambda what: (what not in _FIRST, ":" in what, what)) or [NODES]
    own = nominal or {}
    # Sums of prices have no more places than prices.
    return [
        AmountRow.of(what, round(used.get(what, 0.0), 6), caps.get(what), own.get(what))
        for what in names
    ]


def _is_shown(what: str) -> bool:
    """Whether to show an amount: GPUs by type, not jobs, nor prices, which are their project's."""
    return what == NODES or ":" in what


def _sentence(decision: Start | Refuse) -> str:
    if isinstance(decision, Refuse):
        return decision.message
    return "It starts with the next scheduling pass."
