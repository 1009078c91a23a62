"""What is left of machines and quotas while a plan is made, and what a start takes of it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from jobs.scheduling.kept import Guest, KeptCluster, Wish
from jobs.scheduling.obstacles import no_price
from jobs.scheduling.preemption import without_kept
from jobs.scheduling.reservation import Reservations
from jobs.scheduling.snapshot import DAY_S, QueuedJob, RunningJob, Snapshot


class Room:
    """It only ever shrinks, so what did not fit never will. Only its own methods change it.

    `limits` by their keys, with what is used of them; `running` is who holds machines, also those
    whom the plan has started; `kept` are the clusters that take jobs, best first; `reserved` are
    the places that are held; `changes` counts how often less was left.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._now_s, self._patience_s = snapshot.now_s, snapshot.patience_s
        self.limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
        self.kept = [replace(each, guests=list(each.guests)) for each in snapshot.kept]
        # A cluster that a queued job names stays, also with a job on it: its data is there.
        self.running = without_kept(snapshot.running, snapshot.all_named)
        self._free_s = {each.cluster: _end(each) for each in snapshot.running if each.cluster}
        self.reserved = Reservations()
        self.changes = 0

    def start(self, job: QueuedJob) -> None:
        """Take what `job` takes on machines of its own."""
        for key in job.shape.limits:
            self.limits[key].take(job.shape.demand)
        self.changes += 1
        self.running.append(RunningJob(job.job_id, job.shape, job.until_s(self._now_s)))

    def count_on(self, chosen: Collection[RunningJob], job: QueuedJob) -> None:
        """Hold the place of `job` for soon: `chosen` leave, and nobody else may fill what they had.

        Nor may its own quotas be used up by others until then.
        """
        going = {id(each) for each in chosen}
        self.running = [
            replace(each, is_leaving=True, ends_s=self._now_s) if id(each) in going else each
            for each in self.running
        ]
        given_back = {each.kept for each in chosen if each.kept}
        for cluster in self.kept:
            cluster.is_ready = cluster.is_ready and cluster.name not in given_back
        soon = [
            replace(each, ends_s=self._now_s) if each.is_leaving else each for each in self.running
        ]
        # Those before it have too little all the same, and are not put off: see `let_beside`.
        self.reserved.hold(job, soon, self.limits, beside_others=False)
        self.reserved.take_beside(job)
        for limit in (self.limits[key] for key in job.shape.limits):
            if not limit.kind.is_machines:
                limit.take(job.shape.demand)
        self.changes += 1

    def lets_in(self, job: QueuedJob, cluster: KeptCluster) -> bool:
        """Whether nothing keeps `job` from a cluster that is on, or for which there is room.

        Where it is so, what it takes of the places that are held is taken.
        """
        switched_on, shape = cluster.switched_on(job.shape), cluster.as_guest(job.shape)
        if no_price(shape, self.limits) is not None:
            return False
        for key in shape.limits:
            limit = self.limits[key]
            if limit.lacks(switched_on if limit.kind.is_machines else shape.demand):
                return False
        until_s = self.until_s(job, cluster)
        if not cluster.is_on:
            # It has no machines: it waits for them as others do.
            return self.reserved.stop(job, until_s, switched_on) is None
        free_s = self._free_s.get(cluster.name, math.inf)
        bears = partial(self._bears, job)
        demand = cluster.all_of(job.shape)
        return self.reserved.stop_guest(job, until_s, demand, free_s, bears) is None

    def let_in(self, job: QueuedJob, wish: Wish, cluster: KeptCluster) -> None:
        """Take what `job` takes on a cluster that was kept."""
        switched_on, shape = cluster.switched_on(job.shape), cluster.as_guest(job.shape)
        for key in shape.limits:
            limit = self.limits[key]
            limit.take(switched_on if limit.kind.is_machines else shape.demand)
        self.changes += 1
        self._stays_on(job, cluster)
        cluster.is_on = True
        cluster.guests.append(Guest(job.job_id, wish.port, wish.wants_gpus))

    def until_s(self, job: QueuedJob, cluster: KeptCluster) -> float:
        """Until when a cluster is on with this job, and after it, at most."""
        return job.until_s(self._now_s, cluster.keeps_s)

    def _bears(self, guest: QueuedJob, first: QueuedJob) -> bool:
        """Whether the first who waits for machines is put off by one that goes onto its own."""
        if guest.wish is not None and guest.wish.cluster:
            # It can run nowhere else, and would fail once the cluster has gone.
            return True
        patience_s = self._patience_s.get(first.shape.pool, DAY_S)
        return first.rank <= guest.rank and self._now_s < first.since_s + patience_s

    def _stays_on(self, job: QueuedJob, cluster: KeptCluster) -> None:
        """Who comes later counts on its machines no sooner than they are free after this job."""
        until_s, name = self.until_s(job, cluster), cluster.name
        if not cluster.is_on:
            has = replace(job.shape, demand=cluster.all_of(job.shape))
            self.running.append(RunningJob(job.job_id, has, until_s, cluster=name))
        self.running = [
            replace(each, ends_s=max(until_s, _end(each))) if each.cluster == name else each
            for each in without_kept(self.running, {name})
        ]
        self._free_s[name] = max(until_s, self._free_s.get(name, until_s))


def _end(running: RunningJob) -> float:
    return math.inf if running.ends_s is None else running.ends_s
