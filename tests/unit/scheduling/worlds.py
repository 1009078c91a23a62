"""A small world that carries out one plan after the other: jobs, clusters that are kept, time.

Everything is counted anew for each plan, from what there is. `World` complains by an assertion
where a plan asks for what cannot be: too much of a limit, a cluster that is not free, a job that
does not wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobs.scheduling.kept import Guest, KeptCluster, Wish, fits, why_not
from jobs.scheduling.limits import USD_PER_HOUR, Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Decision,
    Preempt,
    Preemption,
    QueuedJob,
    Refuse,
    RunningJob,
    Snapshot,
    Start,
    Wait,
)

PRICE_USD = 1.0  # of a node and hour, as far as is known before it is there


@dataclass(frozen=True, slots=True)
class Asks:
    """A job that comes at `at_s`. It runs for `runs_s`, and says for how long at most.

    `keeps_s`: it keeps its cluster for so long; `names`: it wants the cluster of that name.
    """

    number: int
    at_s: float
    project: int
    pool: str
    nodes: int
    runs_s: float
    most_s: float
    rank: int = 0
    keeps_s: float | None = None
    names: str = ""
    is_preemptible: bool = False


@dataclass(slots=True)
class Machines:
    """A cluster. `idle_until_s`: it is on without a job until then, or is switched off (-inf)."""

    name: str
    of: Asks
    usd_per_hour: float
    guests: dict[int, tuple[Asks, float]] = field(default_factory=dict)  # and when each began
    idle_until_s: float = math.inf
    is_on: bool = True
    keeps_s: float | None = None


@dataclass(slots=True)
class World:
    """`caps`: of what there is and of quotas, by the keys of limits.

    A node costs `dearer` times as much as was expected. Where it `switches_off`, clusters that were
    idle for too long keep their disks. They end `sooner_s` before the moment that is counted.
    """

    caps: Mapping[str, dict[str, float]]
    preemption: Mapping[str, Preemption] = field(default_factory=dict)
    patience_s: float = 24 * 3600.0
    dearer: float = 1.0
    switches_off: bool = False
    sooner_s: float = 0.0
    now_s: float = 0.0
    queued: dict[int, Asks] = field(default_factory=dict)
    clusters: dict[str, Machines] = field(default_factory=dict)
    started_s: dict[int, float] = field(default_factory=dict)
    promised_s: dict[int, float | None] = field(default_factory=dict)
    _owed: set[int] = field(default_factory=set)
    _shapes: dict[tuple[int, str, int], Shape] = field(default_factory=dict)

    def play(self, jobs: list[Asks]) -> None:
        """Until the last job has come and nothing happens any more."""
        coming = sorted(jobs, key=lambda job: (job.at_s, job.number))
        while (now_s := min(self._moments(coming))) < math.inf:
            self.now_s = now_s
            self._end()
            while coming and coming[0].at_s <= now_s:
                job = coming.pop(0)
                self.queued[job.number] = job
            self.settle()

    def settle(self) -> None:
        """Plan until a plan changes nothing."""
        while self._carry_out(self._decided()):
            self._give_up_idle()

    def snapshot(self) -> Snapshot:
        """What the product would load of it."""
        return Snapshot(
            tuple(self._queued_job(job) for job in self.queued.values()),
            tuple(self._holder(each) for each in self.clusters.values() if each.is_on),
            self._counted(),
            patience_s=dict.fromkeys(("pool:a", "pool:z"), self.patience_s),
            preemption=self.preemption,
            kept=tuple(
                self._kept(each) for each in self.clusters.values() if each.keeps_s is not None
            ),
            now_s=self.now_s,
        )

    def fits_at_all(self, job: Asks) -> bool:
        """Whether there is as much as it asks for, and its quotas allow it."""
        shape, limits = self._shape(job), self._counted()
        return not any(limits[key].never_has(shape.demand) for key in shape.limits)

    def _decided(self) -> list[Decision]:
        snapshot = self.snapshot()
        decisions = plan(snapshot)
        assert decisions == plan(snapshot)
        assert sorted(each.job_id for each in decisions) == sorted(self.queued)
        for each in decisions:
            if isinstance(each, Wait) and each.cause.code == "no_room":
                self.promised_s.setdefault(each.job_id, getattr(each.cause, "expected_s", None))
        return decisions

    def _carry_out(self, decisions: list[Decision]) -> bool:
        acts = [each for each in decisions if not isinstance(each, Wait)]
        there = {name for name, each in self.clusters.items() if each.keeps_s is not None}
        for each in acts:
            match each:
                case Start():
                    self._start(self.queued.pop(each.job_id), each.onto)
                case Refuse():
                    job = self.queued.pop(each.job_id)
                    assert job.names
                    assert job.names not in there or not self._has(job, self.clusters[job.names])
                case Preempt():
                    self._owed.add(each.job_id)
                    for name in each.kept:
                        assert not self.clusters.pop(name).guests
                    for number in each.victims:
                        self._stop(number)
        for cluster in self.clusters.values():
            cluster.usd_per_hour = PRICE_USD * self.dearer * cluster.of.nodes
        return bool(acts)

    def _start(self, job: Asks, onto: str) -> None:
        before = self._counted()
        if not onto:
            name = f"c{job.number}"
            cluster = Machines(name, job, PRICE_USD * job.nodes, keeps_s=job.keeps_s)
            self.clusters[name] = cluster
        else:
            cluster = self.clusters[onto]
            wish, kept = self._wish(job), self._kept(cluster)
            assert wish is not None
            assert job.names == onto or fits(wish, kept)
            assert not why_not(wish, kept)
            cluster.is_on, cluster.idle_until_s = True, math.inf
            if job.keeps_s is not None:
                cluster.keeps_s = job.keeps_s
        cluster.guests[job.number] = job, self.now_s
        for key, limit in self._counted().items():
            for what, cap in limit.caps.items():
                used = limit.used.get(what, 0.0)
                was = before[key].used.get(what, 0.0)
                assert used <= cap + 1e-6 or used <= was + 1e-6, (key, what, used, cap)
        self.started_s.setdefault(job.number, self.now_s)
        self._owed.discard(job.number)

    def _has(self, job: Asks, cluster: Machines) -> bool:
        return job.project == cluster.of.project and job.nodes <= cluster.of.nodes

    def _stop(self, number: int) -> None:
        """It gives way, and does not come again."""
        (cluster,) = (each for each in self.clusters.values() if number in each.guests)
        job, _ = cluster.guests[number]
        assert job.is_preemptible
        del self.clusters[cluster.name]

    def _moments(self, coming: list[Asks]) -> Iterator[float]:
        yield coming[0].at_s if coming else math.inf
        for cluster in self.clusters.values():
            yield from (began_s + job.runs_s for job, began_s in cluster.guests.values())
            if cluster.is_on and cluster.idle_until_s > self.now_s:
                yield cluster.idle_until_s

    def _end(self) -> None:
        for cluster in list(self.clusters.values()):
            for number, (job, began_s) in list(cluster.guests.items()):
                if began_s + job.runs_s <= self.now_s:
                    del cluster.guests[number]
                    if not cluster.guests and cluster.keeps_s is None:
                        del self.clusters[cluster.name]
                    elif not cluster.guests:
                        idle_s = (cluster.keeps_s or 0.0) - self.sooner_s
                        cluster.idle_until_s = self.now_s + idle_s
        self._give_up_idle()

    def _give_up_idle(self) -> None:
        for cluster in list(self.clusters.values()):
            is_over = cluster.is_on and not cluster.guests and cluster.idle_until_s <= self.now_s
            if not is_over or self._is_named(cluster):
                continue
            if self.switches_off:
                cluster.is_on = False
            else:
                del self.clusters[cluster.name]

    def _is_named(self, cluster: Machines) -> bool:
        return any(job.names == cluster.name for job in self.queued.values())

    def _counted(self) -> dict[str, Limit]:
        kinds = {key: LimitKind(key.partition(":")[0]) for key in self.caps}
        limits = {key: Limit(kinds[key], key, dict(caps)) for key, caps in self.caps.items()}
        for cluster in self.clusters.values():
            for key in self._shape(cluster.of).limits if cluster.is_on else ():
                if limits[key].kind.is_machines:
                    limits[key].take(self._shape(cluster.of).demand)
            for job, _ in cluster.guests.values():
                shape = self._shape(job).priced(cluster.usd_per_hour / len(cluster.guests))
                for key in shape.limits:
                    if not limits[key].kind.is_machines:
                        limits[key].take(shape.demand)
        return limits

    def _shape(self, job: Asks) -> Shape:
        key = job.project, job.pool, job.nodes
        if key not in self._shapes:
            nodes = float(job.nodes)
            demand = (("jobs", 1.0), ("nodes", nodes), (USD_PER_HOUR, PRICE_USD * nodes))
            limits = (f"project:{job.project}", job.pool, "backend:b")
            self._shapes[key] = Shape(job.pool, "b", job.nodes, demand, limits, nodes)
        return self._shapes[key]

    def _wish(self, job: Asks) -> Wish | None:
        if job.keeps_s is None and not job.names:
            return None
        machines = "" if job.names else f"{job.nodes}"
        port = 20_000 + 2 * job.number
        asked = {"fingerprint": machines, "cluster": job.names, "pool": job.pool}
        return Wish(job.project, job.nodes, port, keeps_s=job.keeps_s, **asked)

    def _queued_job(self, job: Asks) -> QueuedJob:
        return QueuedJob(
            job.number,
            self._shape(job),
            project_id=job.project,
            rank=job.rank,
            since_s=job.at_s,
            duration_s=job.most_s,
            wish=self._wish(job),
            is_owed=job.number in self._owed,
        )

    def _holder(self, cluster: Machines) -> RunningJob:
        guests = list(cluster.guests.values())
        alone = guests[0][0] if len(guests) == 1 else None
        ends_s: float | None = cluster.idle_until_s + self.sooner_s
        if guests:
            last_s = max(began_s + job.most_s for job, began_s in guests)
            ends_s = last_s + (cluster.keeps_s or 0.0)
        if self._is_named(cluster):
            ends_s = None
        return RunningJob(
            max(cluster.guests, default=-cluster.of.number),
            self._shape(cluster.of),
            ends_s,
            began_s=max((began_s for _, began_s in guests), default=0.0),
            project_id=cluster.of.project,
            rank=(alone or cluster.of).rank,
            is_preemptible=alone is not None and alone.is_preemptible and not alone.names,
            counts_in_quotas=alone is not None and alone.nodes == cluster.of.nodes,
            cluster=cluster.name,
            kept="" if guests or self._is_named(cluster) else cluster.name,
        )

    def _kept(self, cluster: Machines) -> KeptCluster:
        return KeptCluster(
            cluster.name,
            cluster.of.project,
            "b",
            cluster.of.nodes,
            f"{cluster.of.nodes}",
            is_on=cluster.is_on,
            guests=[
                Guest(number, 20_000 + 2 * number, wants_gpus=False) for number in cluster.guests
            ],
            usd_per_hour=cluster.usd_per_hour,
            pool=cluster.of.pool,
            machines=(("nodes", float(cluster.of.nodes)),),
            keeps_s=cluster.keeps_s or 0.0,
        )
