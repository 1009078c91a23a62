"""What holds machines, and until when: clusters that are on, and jobs between two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db.models import QuerySet

from jobs.models import Cluster
from jobs.policies.idle import IdlePolicy, Kept, Wanted, counted_until
from jobs.policies.limits import Limit as MostOf
from jobs.queueing.limits import Asked, Places, backend_key
from jobs.queueing.machines import Last, Machines, last_on, machines_of
from jobs.queueing.warm_clusters import OFF_SINCE
from jobs.queueing.warm_requests import Wants
from jobs.scheduling.limits import Shape
from jobs.scheduling.snapshot import RunningJob
from jobs.statuses import ClusterStatus, JobStatus

# What a job holds its machines for beside the time of `run`: their start, its set-up, its end.
AROUND_RUN_S = 600.0


@dataclass(slots=True)
class Active:
    """A job that has left the queue and not ended.

    Since when it is where it is, when its run began there, until when it holds machines at most.
    """

    job_id: int
    asked: Asked
    since_s: float
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


class Holders:
    """Counts, at one moment, what is held of machines.

    `most_idle` is what administrators allow, by project. `stuck` are the pools of which
    machines fail to be given back for too long, once all was counted.
    """

    def __init__(
        self, places: Places, now_s: float, wants: Wants, most_idle: Mapping[int, MostOf | None]
    ) -> None:
        self._places, self._now_s = places, now_s
        self._wants, self._most_idle = wants, most_idle
        self.stuck: set[str] = set()

    def count(self, active: Iterable[Active], there: QuerySet[Cluster]) -> Iterator[RunningJob]:
        """All that hold any; `there` are the clusters that are on."""
        guests: dict[int, list[Active]] = defaultdict(list)
        for job in active:
            if job.cluster_id is not None:
                guests[job.cluster_id].append(job)
            else:
                shape = self._places.shape_of(job.asked)
                self._take(shape)
                begin_end = (job.ends_s, self._now_s)
                yield RunningJob(job.job_id, shape, *begin_end, is_leaving=job.is_over)
        with_prices = self._places.prices.are_counted
        clusters = list(machines_of(there, with_prices=with_prices))
        last = last_on([each.pk for each in clusters if each.pk not in guests])
        for cluster in clusters:
            shape = self._places.shape_of(cluster.asked)
            self._take(shape, but=backend_key(shape.backend_name))
            here = guests.get(cluster.pk, [])
            yield self._on(cluster, here, _newest(here) or last.get(cluster.pk))

    def _on(self, cluster: Machines, guests: list[Active], last: Last | None) -> RunningJob:
        """What is on a cluster, under the number of who came there last."""
        alone = guests[0] if len(guests) == 1 else None
        asked = alone.asked if alone else cluster.asked
        is_stopping = alone is not None and alone.status == JobStatus.STOPPING
        is_stuck = self._is_stuck(cluster)
        if is_stuck:
            self.stuck.add(self._places.shape_of(cluster.asked).pool)
        is_leaving = self._is_leaving(cluster, guests) and not is_stuck
        may = (
            alone is not None
            and not is_stopping
            and not alone.names_cluster
            and self._places.may_be_stopped(asked, says_so=alone.preemptible)
        )
        return RunningJob(
            # No job has a number below 0.
            job_id=last.job_id if last else -cluster.pk,
            shape=self._places.prices.of_running(self._shape_on(cluster, alone), cluster.pk),
            ends_s=self._free_at(cluster, guests, is_leaving=is_leaving),
            began_s=last.began_s if last else 0.0,
            project_id=asked.project_id,
            rank=self._places.rank_of(asked.queue_name),
            is_preemptible=may,
            is_leaving=is_leaving,
            stopped_for=(last and last.preempted_by) or 0 if is_leaving else 0,
            # One on a part of the machines holds less of its quotas than these are.
            counts_in_quotas=alone is not None and _is_all_of(cluster, alone),
            cluster=cluster.name,
            kept=cluster.name if self._may_go(cluster, guests) else "",
        )

    def _shape_on(self, cluster: Machines, alone: Active | None) -> Shape:
        """Of the machines, and of the quotas in which the job that has them counts."""
        machines = self._places.shape_of(cluster.asked)
        if alone is None or alone.asked == cluster.asked:
            return machines
        guest, limits = self._places.shape_of(alone.asked), self._places.limits
        held = [key for key in machines.limits if limits[key].kind.is_machines]
        quotas = [key for key in guest.limits if not limits[key].kind.is_machines]
        return replace(machines, limits=(*held, *quotas))

    def _is_leaving(self, cluster: Machines, guests: list[Active]) -> bool:
        """Whether its machines are being given back."""
        is_ending = not guests or [each.status for each in guests] == [JobStatus.STOPPING]
        is_idle = not guests and cluster.idle_since is not None
        return (
            (is_ending and not cluster.is_reusable)
            or (is_idle and cluster.status == ClusterStatus.STOPPING)  # it is switched off
            or cluster.release_requested_at is not None
        )

    def _may_go(self, cluster: Machines, guests: list[Active]) -> bool:
        """Whether it is kept without a job and may be given back to another project."""
        is_left = not guests and cluster.idle_since is not None
        is_wanted = (
            bool(cluster.idle_policy.get("until"))  # somebody has asked to keep it longer
            or self._is_named(cluster)
        )
        is_up = cluster.status == ClusterStatus.UP
        return is_left and is_up and not is_wanted and not self._is_leaving(cluster, guests)

    def _is_stuck(self, cluster: Machines) -> bool:
        """Whether giving its machines back has failed for too long to count on it."""
        asked_s = self._given_back_s(cluster)
        return asked_s is not None and self._now_s - asked_s >= AROUND_RUN_S

    def _given_back_s(self, cluster: Machines) -> float | None:
        """Since when its machines are being given back; None: they are not, or nobody knows."""
        if cluster.release_requested_at is not None:
            return cluster.release_requested_at.timestamp()
        is_switched_off = cluster.status == ClusterStatus.STOPPING and cluster.idle_since
        return cluster.idle_policy.get(OFF_SINCE) if is_switched_off else None

    def _free_at(
        self, cluster: Machines, guests: list[Active], *, is_leaving: bool
    ) -> float | None:
        """When a cluster's machines are free at the latest; None: nobody can say."""
        if self._is_stuck(cluster):
            return None
        if is_leaving:
            asked_s = self._given_back_s(cluster)
            return (self._now_s if asked_s is None else asked_s) + AROUND_RUN_S
        if cluster.idle_since is not None:
            since_s = cluster.idle_since.timestamp()
        else:
            bounded = [guest.ends_s for guest in guests if guest.ends_s is not None]
            if not bounded or len(bounded) < len(guests):
                return None
            since_s = max(bounded)
            if not cluster.is_reusable:
                return since_s
        # As long as after a job that is yet to come, `stays_s`: else the moments of those that wait
        # would move from one such job to the next.
        kept = Kept(datetime.fromtimestamp(since_s, UTC), IdlePolicy.from_dict(cluster.idle_policy))
        most = self._most_idle.get(cluster.asked.project_id)
        left = counted_until(kept, most, is_named=self._is_named(cluster))
        return None if left is None else max(self._now_s, left.timestamp())

    def _is_named(self, cluster: Machines) -> bool:
        asked, pool = cluster.asked, self._places.shape_of(cluster.asked).pool
        wanted = self._wants.of(asked.project_id, pool, cluster.name, cluster.fingerprint)
        return wanted is Wanted.BY_NAME

    def _take(self, shape: Shape, *, but: str = "") -> None:
        limits = self._places.limits
        for key in shape.limits:
            if limits[key].kind.is_machines and key != but:
                limits[key].take(shape.demand)


def _is_all_of(cluster: Machines, guest: Active) -> bool:
    return guest.asked == cluster.asked or guest.asked.amounts == cluster.asked.amounts


def _newest(guests: list[Active]) -> Last | None:
    if not guests:
        return None
    if len(guests) == 1:
        return Last(guests[0].job_id, guests[0].since_s, guests[0].preempted_by)
    newest = max(guests, key=lambda each: each.since_s)
    return Last(newest.job_id, newest.since_s, newest.preempted_by)
