"""A small world that carries out one plan after the other: jobs, warm clusters, time.

Usage is counted anew for each plan. `World` fails by an assertion where a plan is impossible: it
exceeds a limit, has more machines up than there are, uses a cluster that is not free, or starts a
job that does not wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobs.scheduling.blockers import busy_cluster
from jobs.scheduling.limits import USD_PER_HOUR, Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Decision,
    Evict,
    NamedCluster,
    Preempt,
    Preemption,
    QueuedJob,
    Refuse,
    RunningJob,
    Snapshot,
    Start,
    Wait,
    WarmCluster,
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
    """A cluster with the job on it. `idle_until_s`: it stays on without a job until then.

    `gone_at_s`: it is being ended, and has its machines until then.
    """

    name: str
    of: Asks
    job: Asks | None
    began_s: float
    usd_per_hour: float
    idle_until_s: float = math.inf
    is_on: bool = True
    keeps_s: float | None = None
    gone_at_s: float = math.inf


@dataclass(slots=True)
class World:
    """A simulated installation; `caps` are those of machines and quotas, by the keys of limits.

    A node costs `dearer` times as much as was expected. Where it `switches_off`, clusters that were
    idle for too long keep their disks. A cluster that a plan ends is terminated after `ending_s`.
    """

    caps: Mapping[str, dict[str, float]]
    preemption: Mapping[str, Preemption] = field(default_factory=dict)
    patience_s: float = 24 * 3600.0
    dearer: float = 1.0
    switches_off: bool = False
    ending_s: float = 0.0
    now_s: float = 0.0
    queued: dict[int, Asks] = field(default_factory=dict)
    clusters: dict[str, Machines] = field(default_factory=dict)
    started_s: dict[int, float] = field(default_factory=dict)
    promised_s: dict[int, float | None] = field(default_factory=dict)
    _claiming: set[int] = field(default_factory=set)
    _shapes: dict[tuple[int, str, int], Shape] = field(default_factory=dict)

    def play(self, jobs: list[Asks]) -> None:
        """Play the jobs until the last one was submitted and nothing happens any more."""
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
        """Return the snapshot that the product would load of this world."""
        warm = [each for each in self.clusters.values() if self._is_warm(each)]
        return Snapshot(
            tuple(self._queued_job(job) for job in self.queued.values()),
            tuple(self._holder(each) for each in self.clusters.values() if self._holds(each)),
            self._counted(),
            patience_s=dict.fromkeys(("pool:a", "pool:z"), self.patience_s),
            preemption=self.preemption,
            warm=tuple(map(self._warm, sorted(warm, key=lambda each: not each.is_on))),
            fingerprints={
                job.number: f"{job.nodes}"
                for job in self.queued.values()
                if job.keeps_s is not None and not job.names
            },
            now_s=self.now_s,
        )

    def fits_at_all(self, job: Asks) -> bool:
        """Whether the limits and its quotas could ever allow the job."""
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
        warm = {name: each for name, each in self.clusters.items() if each.keeps_s is not None}
        for each in acts:
            match each:
                case Start():
                    self._start(self.queued.pop(each.job_id), each.onto)
                case Refuse():
                    job = self.queued.pop(each.job_id)
                    assert job.names
                    assert job.names not in warm or not self._has(job, warm[job.names])
                case Preempt():
                    self._claiming.add(each.job_id)
                    for number in each.victims:
                        self._stop(number)
                case Evict():
                    self._evict(each.clusters)
        for cluster in self.clusters.values():
            cluster.usd_per_hour = PRICE_USD * self.dearer * cluster.of.nodes
        self._end()
        return bool(acts)

    def _evict(self, names: tuple[str, ...]) -> None:
        for name in names:
            assert self._is_idle(self.clusters[name])
            assert self._is_warm(self.clusters[name])
            self.clusters[name].gone_at_s = self.now_s + self.ending_s

    def _start(self, job: Asks, onto: str) -> None:
        before = self._counted()
        if not onto:
            name, usd = f"c{job.number}", PRICE_USD * job.nodes
            self.clusters[name] = Machines(name, job, job, self.now_s, usd, keeps_s=job.keeps_s)
        else:
            cluster = self.clusters[onto]
            assert cluster.job is None
            assert cluster.gone_at_s == math.inf
            assert cluster.of.project == job.project
            assert cluster.of.pool == job.pool
            assert job.names == onto or cluster.of.nodes == job.nodes
            cluster.is_on, cluster.idle_until_s = True, math.inf
            cluster.job, cluster.began_s = job, self.now_s
            # As of a new one: a plan counts what is expected.
            cluster.usd_per_hour = PRICE_USD * cluster.of.nodes
            if job.keeps_s is not None:
                cluster.keeps_s = job.keeps_s
        self._check(before)
        self.started_s.setdefault(job.number, self.now_s)
        self._claiming.discard(job.number)

    def _check(self, before: dict[str, Limit]) -> None:
        """Assert that no further limit is exceeded, and that no more machines are up than exist."""
        for key, limit in self._counted().items():
            up = sum(each.of.nodes for each in self.clusters.values() if self._is_up(each, key))
            for what, cap in limit.caps.items():
                used, was = limit.used.get(what, 0.0), before[key].used.get(what, 0.0)
                assert used <= cap + 1e-6 or used <= was + 1e-6, (key, what, used, cap)
                assert not limit.kind.is_machines or up <= cap, (key, up, cap)

    def _is_up(self, cluster: Machines, key: str) -> bool:
        return cluster.is_on and key in self._shape(cluster.of).limits

    def _has(self, job: Asks, cluster: Machines) -> bool:
        return job.project == cluster.of.project and job.nodes <= cluster.of.nodes

    def _stop(self, number: int) -> None:
        """Preempt the job, which does not return; its cluster is idle if the job keeps it."""
        (cluster,) = (each for each in self.clusters.values() if self._runs(each) == number)
        assert cluster.job is not None
        assert cluster.job.is_preemptible
        self._leave(cluster)

    @staticmethod
    def _runs(cluster: Machines) -> int | None:
        return None if cluster.job is None else cluster.job.number

    def _moments(self, coming: list[Asks]) -> Iterator[float]:
        yield coming[0].at_s if coming else math.inf
        for cluster in self.clusters.values():
            yield cluster.gone_at_s
            if cluster.job is not None:
                yield cluster.began_s + cluster.job.runs_s
            elif cluster.is_on and cluster.idle_until_s > self.now_s:
                yield cluster.idle_until_s

    def _end(self) -> None:
        for cluster in list(self.clusters.values()):
            if cluster.gone_at_s <= self.now_s:
                del self.clusters[cluster.name]
            elif cluster.job is not None and cluster.began_s + cluster.job.runs_s <= self.now_s:
                self._leave(cluster)
        self._give_up_idle()

    def _leave(self, cluster: Machines) -> None:
        cluster.job = None
        if cluster.keeps_s is None:
            del self.clusters[cluster.name]
        else:
            cluster.idle_until_s = self.now_s + cluster.keeps_s

    def _give_up_idle(self) -> None:
        for cluster in list(self.clusters.values()):
            is_over = self._is_idle(cluster) and cluster.idle_until_s <= self.now_s
            if not is_over or self._is_named(cluster):
                continue
            if self.switches_off:
                cluster.is_on = False
            else:
                del self.clusters[cluster.name]

    @staticmethod
    def _is_idle(cluster: Machines) -> bool:
        return cluster.is_on and cluster.job is None and cluster.gone_at_s == math.inf

    def _is_warm(self, cluster: Machines) -> bool:
        """Whether a plan may give it to a job, or end it; not where a waiting job names it."""
        return cluster.job is None and not self._is_named(cluster)

    def _holds(self, cluster: Machines) -> bool:
        return cluster.is_on and not self._is_warm(cluster)

    def _is_named(self, cluster: Machines) -> bool:
        return any(
            (job.names, job.project, job.pool)
            == (cluster.name, cluster.of.project, cluster.of.pool)
            for job in self.queued.values()
        )

    def _counted(self) -> dict[str, Limit]:
        kinds = {key: LimitKind(key.partition(":")[0]) for key in self.caps}
        limits = {key: Limit(kinds[key], key, dict(caps)) for key, caps in self.caps.items()}
        for cluster in filter(self._holds, self.clusters.values()):
            shape = self._shape_on(cluster)
            for key in shape.limits:
                if limits[key].kind.is_machines or cluster.job is not None:
                    limits[key].take(shape.demand)
        return limits

    def _shape_on(self, cluster: Machines) -> Shape:
        """Return the request of the job on a cluster: all of the cluster."""
        return self._shape(cluster.of).priced(cluster.usd_per_hour)

    def _shape(self, job: Asks) -> Shape:
        key = job.project, job.pool, job.nodes
        if key not in self._shapes:
            nodes = float(job.nodes)
            demand = (("jobs", 1.0), ("nodes", nodes), (USD_PER_HOUR, PRICE_USD * nodes))
            limits = (f"project:{job.project}", job.pool, "backend:b")
            self._shapes[key] = Shape(job.pool, "b", job.nodes, demand, limits, nodes)
        return self._shapes[key]

    def _queued_job(self, job: Asks) -> QueuedJob:
        cluster = self._named(job) if job.names else None
        return QueuedJob(
            job.number,
            self._shape(job) if cluster is None else self._shape_on_named(job, cluster),
            project_id=job.project,
            rank=job.rank,
            since_s=job.at_s,
            duration_s=job.most_s,
            cluster=cluster,
            has_claim=job.number in self._claiming,
        )

    def _named(self, job: Asks) -> NamedCluster:
        cluster = self.clusters.get(job.names)
        if cluster is None or cluster.keeps_s is None or not self._has(job, cluster):
            return NamedCluster(job.names, "It no longer exists.", is_gone=True)
        if cluster.of.pool != job.pool:
            return NamedCluster(job.names, "It is of another pool.")
        number = self._runs(cluster)
        if number is not None:
            return NamedCluster(job.names, busy_cluster(job.names, number))
        is_ending = cluster.gone_at_s < math.inf
        return NamedCluster(job.names, "It is being ended." if is_ending else "")

    def _shape_on_named(self, job: Asks, named: NamedCluster) -> Shape:
        if named.is_gone:
            return self._shape(job)
        cluster = self.clusters[named.name]
        whole = self._shape_on(cluster)
        return replace(whole, limits=whole.limits[:1]) if cluster.is_on else whole

    def _holder(self, cluster: Machines) -> RunningJob:
        job, is_named = cluster.job, self._is_named(cluster)
        return RunningJob(
            -cluster.of.number if job is None else job.number,
            self._shape_on(cluster),
            None if job is None or is_named else cluster.began_s + job.most_s,
            began_s=cluster.began_s,
            project_id=cluster.of.project,
            rank=(job or cluster.of).rank,
            is_preemptible=bool(job and job.is_preemptible and not job.names and not is_named),
            counts_in_quotas=job is not None,
        )

    def _warm(self, cluster: Machines) -> WarmCluster:
        return WarmCluster(
            cluster.name,
            cluster.of.project,
            f"{cluster.of.nodes}",
            self._shape(cluster.of),
            is_on=cluster.is_on,
            is_ending=cluster.gone_at_s < math.inf,
        )
