"""The state of a fake cluster: how long its machines were on, and the runs of attempts on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jobs.backends.base import ClusterPhase

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class FakePlan:
    """The course of a job's clusters. Times are seconds; None: it does not end by itself."""

    start_s: float = 0.0
    run_s: float | None = None
    stop_s: float = 0.0
    switch_off_s: float = 0.0
    tear_down_s: float = 0.0
    exit_code: int = 0
    lines: tuple[str, ...] = ()
    line_every_s: float = 0.0  # the pause between two lines
    is_lost: bool = False  # the machines vanish with their disks, without a last report
    launch_error: str = ""  # BackendError on launch

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> FakePlan:
        """Invert `dataclasses.asdict`."""
        return cls(**{**content, "lines": tuple(content["lines"])})


@dataclass(frozen=True, slots=True)
class FakeRun:
    """One attempt on a cluster."""

    attempt_id: int
    plan: FakePlan
    num_nodes: int
    up_at: float
    stopped_at: float | None = None
    ended_at: float | None = None  # ended from outside: `finish`, `lose`, machines switched off

    def ends_at(self) -> float | None:
        """Return when the run's runners are dead; None while nothing ends them."""
        candidates = (
            None if self.plan.run_s is None else self.up_at + self.plan.run_s,
            None if self.stopped_at is None else self.stopped_at + self.plan.stop_s,
            self.ended_at,
        )
        return min((moment for moment in candidates if moment is not None), default=None)

    def has_ended(self, now: float) -> bool:
        """Whether its runners are dead."""
        ends_at = self.ends_at()
        return ends_at is not None and now >= ends_at


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """One cluster: its machines, and what has run on them."""

    num_nodes: int
    launched_at: float
    on_at: float  # when the machines were last switched on
    up_at: float
    runs: tuple[FakeRun, ...]
    on_s: float = 0.0  # for how long they were on before `on_at`
    off_at: float | None = None  # when they are stopped, if that was requested
    termination_requested_at: float | None = None
    autostop_minutes: int | None = None
    avoid: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> FakeCluster:
        """Invert `dataclasses.asdict`."""
        runs = tuple(
            FakeRun(**{**run, "plan": FakePlan.from_dict(run["plan"])}) for run in content["runs"]
        )
        return cls(**{**content, "runs": runs})

    @property
    def plan(self) -> FakePlan:
        """The plan of its newest attempt, by which its machines live."""
        return self.runs[-1].plan

    def run_of(self, attempt_id: int | None) -> FakeRun | None:
        """Return the attempt's run, the newest for None; None if it was never started here."""
        if attempt_id is None:
            return self.runs[-1]
        return next((run for run in self.runs if run.attempt_id == attempt_id), None)

    def with_run(self, run: FakeRun) -> FakeCluster:
        """Return the cluster with this run in place of that of the same attempt."""
        runs = tuple(run if old.attempt_id == run.attempt_id else old for old in self.runs)
        return replace(self, runs=runs)

    def is_lost(self, now: float) -> bool:
        """Whether the machines have vanished."""
        return any(run.plan.is_lost and run.has_ended(now) for run in self.runs)

    def is_off(self, now: float) -> bool:
        """Whether the machines are switched off."""
        return self.off_at is not None and now >= self.off_at

    def seconds_on(self, now: float) -> float:
        """Return for how many seconds the machines were on until `now`."""
        until = now if self.off_at is None else min(now, self.off_at)
        return self.on_s + max(0.0, until - self.on_at)

    def phase(self, attempt_id: int | None, now: float) -> ClusterPhase:
        """Return the cluster's phase for that attempt."""
        if self.is_lost(now):
            return ClusterPhase.GONE
        if self.is_off(now):
            return ClusterPhase.STOPPED
        run = self.run_of(attempt_id)
        if run is None:
            return ClusterPhase.GONE
        if run.has_ended(now):
            return ClusterPhase.ENDED
        return ClusterPhase.UP if now >= run.up_at else ClusterPhase.STARTING
