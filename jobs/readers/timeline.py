"""The timeline of the queue for one reader, in a constant number of queries.

All users see what of machines is in use and until when; jobs of others neither by name nor by
number. Starts are those of the plan, as `expected_starts` returns them for the page of a job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from jobs.ground import clock
from jobs.models import Attempt, Job
from jobs.permissions import Actor, projects_of
from jobs.queueing.current_pass import Plan, planned_now
from jobs.queueing.limits import load_queues, pool_of
from jobs.queueing.past_runs import usual_seconds
from jobs.readers.expected_starts import BOUNDS, PAST_RUNS, ExpectedStart, expected_starts
from jobs.readers.queue_rows import place_words
from jobs.readers.visible_causes import visible_causes
from jobs.scheduling.snapshot import Decision, QueuedJob, StaysQueued
from monarch_client.wire.timeline import Timeline, TimelineJob, TimelineLane

# Attempts in all, the newest first, and waiting jobs of each lane, the next ones first.
MOST_ATTEMPTS, MOST_WAITING = 1000, 30
ENDED, RUNNING, WAITING = "ended", "running", "waiting"
BEGAN = "began"


class _Row(NamedTuple):
    """An attempt with what a lane shows of its job."""

    job_id: int
    number: int
    begin: datetime
    end: datetime | None
    name: str
    status: str
    num_nodes: int
    gpu_type: str
    gpu_count: int
    queue_name: str
    backend_name: str
    project_id: int
    slug: str
    owner: str


_COLUMNS = (
    "job_id",
    "number",
    "created_at",
    "ended_at",
    "job__name",
    "job__status",
    "job__num_nodes",
    "job__gpu_type",
    "job__gpu_count",
    "job__queue_name",
    "job__backend_name",
    "job__project_id",
    "job__project__slug",
    "job__submitted_by__username",
)


def timeline(actor: Actor, span: timedelta) -> Timeline:
    """Return the timeline of `span`, with the present in its middle."""
    return _Loader(actor, clock.now(), span).timeline()


class _Loader:
    """A loader of one timeline."""

    def __init__(self, actor: Actor, now: datetime, span: timedelta) -> None:
        self._actor, self._now = actor, now
        self._begin, self._end = now - span / 2, now + span / 2
        self._own = set(projects_of(actor).values_list("pk", flat=True))
        self._lanes: dict[str, list[TimelineJob]] = defaultdict(list)
        self._left_out: dict[str, int] = defaultdict(int)

    def timeline(self) -> Timeline:
        """Return the timeline."""
        plan = planned_now()
        rows = self._attempts()
        self._add_attempts(rows[:MOST_ATTEMPTS], plan)
        self._add_waiting(plan)
        return Timeline(
            now=self._now,
            begin=self._begin,
            end=self._end,
            lanes=[self._lane(key) for key in sorted(self._lanes)],
            is_whole=len(rows) <= MOST_ATTEMPTS,
        )

    def _lane(self, key: str) -> TimelineLane:
        kind, name = place_words(key)
        return TimelineLane(
            kind=kind, name=name, jobs=self._lanes[key], left_out=self._left_out[key]
        )

    def _attempts(self) -> list[_Row]:
        """Return the newest attempts that had machines between the two moments, by their begin."""
        there = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gt=self._begin))
        newest = there.filter(created_at__lt=self._end).order_by("-created_at", "-pk")
        return [_Row(*row) for row in newest.values_list(*_COLUMNS)[: MOST_ATTEMPTS + 1]]

    def _add_attempts(self, rows: Sequence[_Row], plan: Plan) -> None:
        queues = load_queues()
        bounds = {each.job_id: each.ends_s for each in plan[0].running}
        open_jobs = [row.job_id for row in rows if row.end is None]
        usual = usual_seconds(number for number in open_jobs if bounds.get(number) is None)
        for row in reversed(rows):
            key = pool_of(queues.get(row.queue_name), row.backend_name)
            end, basis = self._end_of(row, bounds.get(row.job_id), usual.get(row.job_id))
            self._lanes[key].append(self._attempt(row, end, basis))

    def _end_of(
        self, row: _Row, bound_s: float | None, usual_s: float | None
    ) -> tuple[datetime | None, str]:
        """Return the end of an attempt, or the expected one, and what that is based on."""
        if row.end is not None:
            return row.end, ENDED
        if bound_s is not None:
            return _moment(bound_s), BOUNDS
        if usual_s is not None:
            # One that takes longer than usual may end at any moment.
            return max(self._now, row.begin + timedelta(seconds=usual_s)), PAST_RUNS
        return None, ""

    def _attempt(self, row: _Row, end: datetime | None, basis: str) -> TimelineJob:
        is_own = row.project_id in self._own
        return TimelineJob(
            kind=RUNNING if row.end is None else ENDED,
            job_id=row.job_id if is_own else None,
            project=row.slug if is_own else "",
            name=row.name if is_own else "",
            owner=row.owner if is_own else "",
            status=row.status,
            attempt=row.number if is_own else None,
            num_nodes=row.num_nodes,
            gpu_type=row.gpu_type,
            gpu_count=row.gpu_count,
            begin=row.begin,
            begin_basis=BEGAN,
            end=end,
            end_basis=basis,
            reason="",
        )

    def _add_waiting(self, plan: Plan) -> None:
        snapshot, decisions = plan
        queued = {each.job_id: each for each in snapshot.queued}
        shown = list(self._first_of_lanes(queued, decisions))
        numbers = [each.job_id for each in shown]
        starts = expected_starts(numbers, plan)
        usual = usual_seconds(starts)
        jobs = Job.objects.select_related("project", "submitted_by").defer("spec", "spec_source")
        found = jobs.in_bulk(numbers)
        reasons = self._reasons(shown, found)
        for each in shown:
            if each.job_id in found:
                start = starts.get(each.job_id)
                row = self._waiting(found[each.job_id], start, usual.get(each.job_id), reasons)
                self._lanes[queued[each.job_id].shape.pool].append(row)

    def _first_of_lanes(
        self, queued: Mapping[int, QueuedJob], decisions: Sequence[Decision]
    ) -> Iterator[Decision]:
        """Yield the next jobs of each lane, and count the others."""
        counts: dict[str, int] = defaultdict(int)
        for decision in decisions:
            pool = queued[decision.job_id].shape.pool
            counts[pool] += 1
            if counts[pool] <= MOST_WAITING:
                yield decision
            else:
                self._left_out[pool] += 1

    def _reasons(self, shown: Sequence[Decision], jobs: Mapping[int, Job]) -> dict[int, str]:
        own = [
            each
            for each in shown
            if isinstance(each, StaysQueued)
            and each.job_id in jobs
            and jobs[each.job_id].project_id in self._own
        ]
        causes = visible_causes(self._actor, [each.cause for each in own])
        return {each.job_id: cause.sentence for each, cause in zip(own, causes, strict=True)}

    def _waiting(
        self,
        job: Job,
        start: ExpectedStart | None,
        usual_s: float | None,
        reasons: Mapping[int, str],
    ) -> TimelineJob:
        is_own = job.project_id in self._own
        begin = max(self._now, start.at) if start else None
        end = begin + timedelta(seconds=usual_s) if begin and usual_s is not None else None
        return TimelineJob(
            kind=WAITING,
            job_id=job.pk if is_own else None,
            project=job.project.slug if is_own else "",
            name=job.name if is_own else "",
            owner=job.submitted_by.get_username() if is_own else "",
            status=job.status,
            attempt=None,
            num_nodes=job.num_nodes,
            gpu_type=job.gpu_type,
            gpu_count=job.gpu_count,
            begin=begin,
            begin_basis=start.basis if start else "",
            end=end,
            end_basis=PAST_RUNS if end else "",
            reason=reasons.get(job.pk, ""),
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
