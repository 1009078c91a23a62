"""Plays a trace forward, event by event, and lets a policy say at each pass who starts.

Jobs arrive and end at their times; a pass follows a change, at most one a simulated second, as in
the product. A pass is left out where no queued job fits: no policy could start anything then. Only
the machine knows how long a job really runs: policies see its time limit.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from bench.schedule.trace import Trace, TraceJob

PASS_EVERY_S = 1.0


class ScheduleError(RuntimeError):
    """An impossible decision of a policy, or jobs that it never starts; see the message."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job and when it began."""

    job: TraceJob
    began_s: float

    @property
    def ended_s(self) -> float:
        """The time at which the run releases its nodes."""
        return self.began_s + self.job.runs_s

    @property
    def waited_s(self) -> float:
        """Seconds from the job's submission to its start."""
        return self.began_s - self.job.submit_s


@dataclass(slots=True)
class State:
    """The state that a policy may read: jobs by their numbers, queued ones in order of age."""

    nodes: int
    now_s: float = 0.0
    free: int = 0
    queued: dict[int, TraceJob] = field(default_factory=dict)
    running: dict[int, Run] = field(default_factory=dict)


class Policy(Protocol):
    """A scheduling policy, which chooses the jobs to start and their order."""

    name: str

    def choose(self, state: State) -> Iterable[TraceJob]:
        """Choose the queued jobs that start now; together they fit the free nodes."""

    def ended(self, run: Run, now_s: float) -> None:
        """Note that a job has released its nodes."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a trace: runs in the order of their starts, and the cost of deciding."""

    policy: str
    trace: Trace
    runs: list[Run] = field(default_factory=list)
    passes: int = 0
    decisions: int = 0  # of jobs that waited when a pass was made, over all passes
    deciding_s: float = 0.0


def simulate(trace: Trace, policy: Policy) -> Outcome:
    """Simulate until the last job has ended. ScheduleError: the policy starts what it must not."""
    return _Simulation(trace, policy).played()


class _Simulation:
    def __init__(self, trace: Trace, policy: Policy) -> None:
        self._trace, self._policy = trace, policy
        self._state = State(trace.nodes, free=trace.nodes)
        self._outcome = Outcome(policy.name, trace)
        self._sizes: Counter[int] = Counter()  # of queued jobs
        self._ends: list[tuple[float, int]] = []
        self._arrived = 0
        # When the next pass is due, math.inf while nothing has changed; and when it may be made.
        self._due_s, self._rested_s = math.inf, -math.inf

    def played(self) -> Outcome:
        """Play all events in their order."""
        while (now_s := self._next_s()) < math.inf:
            self._state.now_s = now_s
            if self._end_until(now_s) + self._arrive_until(now_s):
                self._due_s = max(now_s, self._rested_s)
            if now_s >= self._due_s:
                self._pass(now_s)
        if self._state.queued:
            raise ScheduleError(f"{self._policy.name} never starts {len(self._state.queued)} jobs")
        return self._outcome

    def _next_s(self) -> float:
        jobs = self._trace.jobs
        arrives_s = jobs[self._arrived].submit_s if self._arrived < len(jobs) else math.inf
        ends_s = self._ends[0][0] if self._ends else math.inf
        return min(arrives_s, ends_s, self._due_s)

    def _end_until(self, now_s: float) -> int:
        ended = 0
        while self._ends and self._ends[0][0] <= now_s:
            run = self._state.running.pop(heapq.heappop(self._ends)[1])
            self._state.free += run.job.nodes
            self._policy.ended(run, now_s)
            ended += 1
        return ended

    def _arrive_until(self, now_s: float) -> int:
        jobs, first = self._trace.jobs, self._arrived
        while self._arrived < len(jobs) and jobs[self._arrived].submit_s <= now_s:
            job = jobs[self._arrived]
            self._state.queued[job.number] = job
            self._sizes[job.nodes] += 1
            self._arrived += 1
        return self._arrived - first

    def _pass(self, now_s: float) -> None:
        self._due_s = math.inf
        state, outcome = self._state, self._outcome
        if not self._sizes or min(self._sizes) > state.free:
            return
        self._rested_s = now_s + PASS_EVERY_S
        outcome.passes += 1
        outcome.decisions += len(state.queued)
        began = time.perf_counter()
        chosen = list(self._policy.choose(state))
        outcome.deciding_s += time.perf_counter() - began
        for job in chosen:
            self._start(job, now_s)

    def _start(self, job: TraceJob, now_s: float) -> None:
        state = self._state
        if job.number not in state.queued or job.nodes > state.free:
            raise ScheduleError(
                f"{self._policy.name} starts job {job.number} of {job.nodes} nodes at {now_s:g} s; "
                f"{state.free} are free, and jobs start once"
            )
        del state.queued[job.number]
        self._sizes[job.nodes] -= 1
        if not self._sizes[job.nodes]:
            del self._sizes[job.nodes]
        state.free -= job.nodes
        run = state.running[job.number] = Run(job, now_s)
        heapq.heappush(self._ends, (run.ended_s, job.number))
        self._outcome.runs.append(run)
