"""A queued job within a plan: position, blocking limit, holders, and the expected start."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any

from jobs.models import Job
from jobs.permissions import Actor, projects_of
from jobs.queueing.current_pass import Plan
from jobs.queueing.past_runs import usual_seconds
from jobs.readers.expected_starts import (
    ExpectedStart,
    PlannedQueue,
    current_cause,
    depends_on_others,
    expected_starts,
    takes_machines,
)
from jobs.readers.visible_causes import visible_causes
from jobs.scheduling.amounts import counted
from jobs.scheduling.causes import (
    Cause,
    NoRoom,
    OverQuota,
    job_words,
)
from jobs.scheduling.estimate import MOST_AHEAD
from jobs.scheduling.limits import USD_PER_HOUR
from jobs.scheduling.snapshot import QueuedJob, Refuse, RunningJob, StaysQueued
from jobs.statuses import WaitReason
from monarch_client.wire.queue import BindingLimit, Forecast, NamedJob

# More names than these are not read; the numbers say how many there are.
MOST_NAMED = 10
STARTS_NEXT = "It starts with the next scheduling pass, within a second or two."


class PlannedJob:
    """One queued job within a plan, which has it."""

    def __init__(self, actor: Actor, number: int, plan: Plan) -> None:
        snapshot, decisions = plan
        self.number, self._plan = number, plan
        self._actor, self._snapshot = actor, snapshot
        self._queued = {each.job_id: each for each in snapshot.queued}
        self._mine = self._queued[number]
        in_pool = [
            each
            for each in decisions
            if self._queued[each.job_id].shape.pool == self._mine.shape.pool
        ]
        self._decision = next(each for each in in_pool if each.job_id == number)
        self._before = in_pool[: in_pool.index(self._decision)]
        self._ahead = PlannedQueue(plan).ahead_of(number)
        self._of = len(in_pool)

    def forecast(self) -> Forecast:
        """Return the whole explanation."""
        if isinstance(self._decision, Refuse):
            return forecast_of("never", WaitReason.CAPACITY, self._decision.message)
        position = {"position": len(self._before) + 1, "of": self._of}
        if not isinstance(self._decision, StaysQueued):
            return forecast_of("next", "", STARTS_NEXT, **position)
        cause, now = self._decision.cause, current_cause(self._decision)
        key = self._binding(now)
        holders = sorted(self._holders(key), key=lambda each: -each.shape.num_nodes)
        what = getattr(now, "what", "nodes")
        start, no_estimate = self._expected(now)
        return forecast_of(
            "budget" if cause.reason == WaitReason.BUDGET else cause.code,
            cause.reason,
            visible_causes(self._actor, [cause])[0].sentence,
            **position,
            ahead=self._named(each.job_id for each in self._ahead[-MOST_NAMED:]),
            limit=self._limit(now, key) if isinstance(now, OverQuota | NoRoom) else None,
            holders=self._named(
                (each.job_id for each in holders),
                {each.job_id: (what, each.shape.amount(what)) for each in holders},
            ),
            expected_at=start.at if start else None,
            basis=start.basis if start else "",
            latest_at=start.latest_at if start else None,
            no_estimate=no_estimate,
        )

    def _binding(self, cause: Cause) -> str | None:
        """Return the key of the limit that a cause is about."""
        if not isinstance(cause, OverQuota | NoRoom):
            return None
        wanted = cause.limit, cause.name if isinstance(cause, OverQuota) else cause.place
        named = ((key, self._snapshot.limits[key]) for key in self._mine.shape.limits)
        return next((key for key, limit in named if (limit.kind, limit.name) == wanted), None)

    def _limit(self, cause: OverQuota | NoRoom, key: str | None) -> BindingLimit:
        if isinstance(cause, OverQuota):
            whose = (self._snapshot.limits[key].whose if key else "") or cause.name
            kind, used, cap = str(cause.limit), cause.used, cause.cap
        else:
            kind, whose, used, cap = "machines", cause.place, cause.total - cause.free, cause.total
        return BindingLimit(
            kind=kind, name=whose, what=cause.what, needed=cause.needed, used=used, cap=cap
        )

    def _holders(self, key: str | None) -> Iterable[RunningJob]:
        return [
            each
            for each in self._snapshot.running
            if key in each.shape.limits and each.holds_of(self._snapshot.limits[key])
        ]

    def _expected(self, cause: Cause) -> tuple[ExpectedStart | None, str]:
        """Return the expected start, or why there is none."""
        found = expected_starts([self.number], self._plan).get(self.number)
        if found is not None or not depends_on_others(cause):
            return found, ""
        if len(self._ahead) > MOST_AHEAD:
            return None, f"No estimate: more than {MOST_AHEAD} jobs are ahead of it."
        before = [self._queued[each.job_id] for each in self._ahead if takes_machines(each)]
        others: list[RunningJob | QueuedJob] = [*self._snapshot.running, *before]
        usual = usual_seconds({each.job_id for each in others})
        return None, self._no_estimate(others, usual)

    def _no_estimate(self, others: Iterable[RunningJob | QueuedJob], known: Container[int]) -> str:
        """Name the jobs of unknown end that hold, or will hold, what this job needs."""
        limits, shape = self._snapshot.limits, self._mine.shape
        capped = {key for key in shape.limits if limits[key].caps}
        full = {key for key in capped if limits[key].lacks(shape.demand)} or capped
        numbers = [
            each.job_id
            for each in others
            if each.job_id not in known
            and not full.isdisjoint(each.shape.limits)
            # What is left of a job that has ended: it ends by other rules.
            and not (isinstance(each, RunningJob) and not each.counts_in_quotas)
        ]
        if not numbers:
            return ""
        seen = Job.objects.filter(pk__in=numbers, project__in=projects_of(self._actor))
        visible = set(seen.values_list("pk", flat=True))
        who = job_words(next((each for each in numbers if each in visible), None))
        have = "has" if len(numbers) == 1 else f"and {len(numbers) - 1} more have"
        return f"No estimate: {who} {have} no max_duration, and no such job has succeeded lately."

    def _named(
        self, numbers: Iterable[int], has: dict[int, tuple[str, float]] | None = None
    ) -> list[NamedJob]:
        """Return the jobs; those that the reader may not see without name, number or price."""
        chosen = list(dict.fromkeys(itertools.islice(numbers, MOST_NAMED)))
        seen = set(projects_of(self._actor).values_list("pk", flat=True))
        jobs = Job.objects.select_related("project", "submitted_by").in_bulk(chosen)
        found = []
        for number in chosen:
            job = jobs.get(number)
            what, much = (has or {}).get(number, ("", 0.0))
            amount = counted(what, much) if what else ""
            if job is None or job.project_id not in seen:
                found.append(_nameless("" if what == USD_PER_HOUR else amount))
            else:
                owner = job.submitted_by.get_username()
                status = str(job.status)
                found.append(
                    NamedJob(
                        job_id=number,
                        project=job.project.slug,
                        name=job.name,
                        owner=owner,
                        status=status,
                        has=amount,
                    )
                )
        return found


def _nameless(has: str) -> NamedJob:
    """Return a job that the reader may not see."""
    return NamedJob(job_id=None, project="", name="", owner="", status="", has=has)


def forecast_of(code: str, reason: str, sentence: str, **more: Any) -> Forecast:
    """Return a forecast; what `more` does not have is not known."""
    forecast = Forecast(
        code=code,
        reason=str(reason),
        sentence=sentence,
        position=None,
        of=None,
        ahead=[],
        limit=None,
        holders=[],
        expected_at=None,
        basis="",
        no_estimate="",
        latest_at=None,
    )
    return replace(forecast, **more)
