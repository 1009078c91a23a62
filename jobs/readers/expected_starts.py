"""The expected starts of queued jobs: the bounds of the plan, else how long such jobs last.

The page of a job, the overview and the timeline of the queue show the same moments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs.queueing.current_pass import Plan
from jobs.queueing.past_runs import Durations, durations
from jobs.scheduling.causes import (
    Cause,
    ClusterEnding,
    NoPrice,
    NoRoom,
    OverQuota,
    Preempted,
    ReportedBlocker,
)
from jobs.scheduling.estimate import MOST_AHEAD, Forecast
from jobs.scheduling.snapshot import Decision, QueuedJob, Refuse, Snapshot, StaysQueued, Wait

NEXT, BOUNDS, PAST_RUNS = "next", "bounds", "past_runs"
Machines = frozenset[str]


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """An expected start, and what it is based on: `NEXT`, `BOUNDS` or `PAST_RUNS`.

    `latest_at`: the bound of one that past runs let expect before it.
    """

    at: datetime
    basis: str
    latest_at: datetime | None = None


def expected_starts(numbers: Iterable[int], plan: Plan) -> dict[int, ExpectedStart]:
    """Return the expected starts of queued jobs, by number; those without an estimate are absent.

    One read for all jobs, and one forecast for all that wait for the same machines.
    """
    queue = PlannedQueue(plan)
    wanted = [queue.decisions[number] for number in numbers if number in queue.decisions]
    found = {each.job_id: start for each in wanted if (start := queue.known_start(each))}
    by_machines: dict[Machines, set[int]] = defaultdict(set)
    for each in wanted:
        bound = found.get(each.job_id)
        if bound.basis == BOUNDS if bound else _is_estimated(each):
            by_machines[queue.machines_of(each.job_id)].add(each.job_id)
    lines = {key: list(queue.line(key, jobs)) for key, jobs in by_machines.items()}
    lasts = durations(queue.competitors(lines)) if lines else Durations({}, frozenset())
    lasts_s = queue.remaining_seconds(lasts.usual)
    for key, line in lines.items():
        is_past = queue.has_past_runs(key, lasts)
        for number, at_s in _forecast(line, by_machines[key], queue, lasts_s):
            if start := _estimated(at_s, found.get(number), is_past=is_past):
                found[number] = start
    return found


def _estimated(at_s: float, bound: ExpectedStart | None, *, is_past: bool) -> ExpectedStart | None:
    """Return the start that is estimated; None: the bound says more.

    Those behind the first job, which has a bound, must not seem to start before it.
    """
    at = _moment(at_s)
    if bound is None:
        return ExpectedStart(at, PAST_RUNS)
    return ExpectedStart(at, PAST_RUNS, bound.at) if is_past and at < bound.at else None


class PlannedQueue:
    """The decisions of a plan by job, and the jobs that take the same machines."""

    def __init__(self, plan: Plan) -> None:
        self.snapshot: Snapshot = plan[0]
        self.decisions: Mapping[int, Decision] = {each.job_id: each for each in plan[1]}
        self.queued: Mapping[int, QueuedJob] = {each.job_id: each for each in plan[0].queued}
        self._machines: dict[int, Machines] = {}

    def machines_of(self, number: int) -> Machines:
        """Return the keys of the limits of machines that apply to a job."""
        shape = self.queued[number].shape
        found = self._machines.get(id(shape))
        if found is None:
            limits = self.snapshot.limits
            own = {key for key in shape.limits if limits[key].kind.is_machines and limits[key].caps}
            found = self._machines[id(shape)] = frozenset({shape.pool, *own})
        return found

    def line(self, machines: Machines, jobs: Collection[int]) -> Iterator[Decision]:
        """Yield the decisions about jobs that share machines, up to the last of `jobs`."""
        left = set(jobs)
        for number, decision in self.decisions.items():
            if machines & self.machines_of(number):
                yield decision
                left.discard(number)
                if not left:
                    return

    def ahead_of(self, number: int) -> list[Decision]:
        """Return the decisions about the jobs that take the same machines before a job."""
        return list(self.line(self.machines_of(number), [number]))[:-1]

    def competitors(self, lines: Mapping[Machines, Sequence[Decision]]) -> set[int]:
        """Return the numbers of the jobs whose ends the starts in `lines` depend on."""
        ahead = {
            each.job_id
            for line in lines.values()
            for each in line[: MOST_AHEAD + 1]
            if takes_machines(each)
        }
        return ahead | {each.job_id for each in self.snapshot.running}

    def has_past_runs(self, machines: Machines, lasts: Durations) -> bool:
        """Whether past runs show how long a job holds some of these machines."""
        running = (each for each in self.snapshot.running if each.job_id in lasts.from_past)
        return any(machines & {each.shape.pool, *each.shape.limits} for each in running)

    def known_start(self, decision: Decision) -> ExpectedStart | None:
        """Return the start that the plan itself has for a job; None if it has none."""
        if isinstance(decision, Refuse):
            return None
        if not isinstance(decision, StaysQueued):
            return ExpectedStart(_moment(self.snapshot.now_s), NEXT)
        cause = current_cause(decision)
        if isinstance(cause, NoRoom) and cause.expected_s is not None:
            return ExpectedStart(_moment(cause.expected_s), BOUNDS)
        return None

    def remaining_seconds(self, usual: Mapping[int, float]) -> dict[int, float]:
        """Return how long jobs will still hold machines; `usual`: how long in total."""
        began = {each.job_id: each.began_s for each in self.snapshot.running}
        now_s = self.snapshot.now_s
        return {
            number: max(0.0, seconds - (now_s - began[number])) if number in began else seconds
            for number, seconds in usual.items()
        }


def current_cause(decision: StaysQueued) -> Cause:
    """Return what a job waits for now: a preempted one waits for machines as all do."""
    cause = decision.cause
    return cause.then if isinstance(cause, Preempted) else cause


def depends_on_others(cause: Cause) -> bool:
    """Whether the start is a guess from how long other jobs usually last."""
    if isinstance(cause, NoRoom) and cause.expected_s is not None:
        return False
    # A plan does not know when these end; the source of the message may.
    return not isinstance(cause, NoPrice | ReportedBlocker | ClusterEnding)


def takes_machines(decision: Decision) -> bool:
    """Whether a job will take machines before those behind it: nothing else blocks it."""
    if isinstance(decision, Wait):
        return not isinstance(decision.cause, OverQuota | NoPrice | ReportedBlocker)
    return not isinstance(decision, Refuse)


def _is_estimated(decision: Decision) -> bool:
    return isinstance(decision, StaysQueued) and depends_on_others(current_cause(decision))


def _forecast(
    line: Sequence[Decision],
    wanted: Collection[int],
    queue: PlannedQueue,
    lasts_s: Mapping[int, float],
) -> Iterator[tuple[int, float]]:
    """Yield the starts of the jobs in `wanted`, in seconds since the epoch."""
    forecast = Forecast(queue.snapshot, lasts_s)
    for decision in line[: MOST_AHEAD + 1]:
        job = queue.queued[decision.job_id]
        is_counted = takes_machines(decision)
        if not is_counted and decision.job_id not in wanted:
            continue
        # One that something else blocks takes nothing from those behind it.
        at_s = (forecast if is_counted else forecast.copy()).start(job)
        if at_s is not None and decision.job_id in wanted:
            yield decision.job_id, at_s
        elif at_s is None and is_counted:
            return


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
