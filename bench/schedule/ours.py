"""The product's own planner as a policy: `plan()` with snapshots of the simulated machine."""

from __future__ import annotations

from collections import defaultdict

from bench.schedule.ledger import Ledger
from bench.schedule.simulate import Run, State
from bench.schedule.trace import TraceJob
from jobs.scheduling.limits import JOBS, NODES, Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Share, Snapshot, Start

POOL = "pool:simulated"
BACKEND = "simulated"


class Ours:
    """One pool that is all of one backend; shares by `use_accounts`' rules, no quotas."""

    name = "portal"

    def __init__(self, weights: dict[int, float]) -> None:
        self._weights = weights
        self._ledger = Ledger()
        self._shapes: dict[tuple[int, int, int], Shape] = {}
        self._queued: dict[int, QueuedJob] = {}
        self._running: dict[int, RunningJob] = {}

    def choose(self, state: State) -> list[TraceJob]:
        """Choose the jobs that a scheduling pass of the product would start."""
        decisions = plan(self.snapshot(state))
        return [state.queued[each.job_id] for each in decisions if isinstance(each, Start)]

    def ended(self, run: Run, now_s: float) -> None:
        """Record the run's usage, as at the end of an attempt."""
        self._ledger.charge(run, now_s)
        del self._queued[run.job.number]
        self._running.pop(run.job.number, None)

    def snapshot(self, state: State) -> Snapshot:
        """Return the snapshot that the product would load of this state."""
        used = self._ledger.used(state.running.values(), state.now_s, promised=True)
        by_project: dict[int, float] = defaultdict(float)
        for (project, _), node_hours in used.items():
            by_project[project] += node_hours
        return Snapshot(
            queued=tuple(self._queued_job(job) for job in state.queued.values()),
            running=tuple(self._holds(run) for run in state.running.values()),
            limits={
                POOL: Limit(
                    LimitKind.POOL,
                    BACKEND,
                    {NODES: float(state.nodes)},
                    {NODES: float(state.nodes - state.free), JOBS: float(len(state.running))},
                )
            },
            shares={
                (POOL, project): Share(by_project[project], weight)
                for project, weight in self._weights.items()
            },
            persons={(POOL, *who): node_hours for who, node_hours in used.items()},
            now_s=state.now_s,
        )

    def _queued_job(self, job: TraceJob) -> QueuedJob:
        queued = self._queued.get(job.number)
        if queued is None:
            queued = self._queued[job.number] = QueuedJob(
                job.number,
                self._shape(job),
                project_id=job.project,
                person_id=job.person,
                since_s=job.submit_s,
                duration_s=job.asks_s,
            )
        return queued

    def _holds(self, run: Run) -> RunningJob:
        running = self._running.get(run.job.number)
        if running is None:
            ends_s = run.began_s + run.job.asks_s
            running = RunningJob(run.job.number, self._shape(run.job), ends_s, run.began_s)
            self._running[run.job.number] = running
        return running

    def _shape(self, job: TraceJob) -> Shape:
        """Return the request that jobs of the same project, person and size share."""
        key = job.project, job.person, job.nodes
        if key not in self._shapes:
            demand = ((JOBS, 1.0), (NODES, float(job.nodes)))
            self._shapes[key] = Shape(POOL, BACKEND, job.nodes, demand, (POOL,), float(job.nodes))
        return self._shapes[key]
