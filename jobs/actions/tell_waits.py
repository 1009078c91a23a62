"""Writing down why jobs wait: what the plan says, beside the job, only where it has changed.

All of a job's project read that: other jobs have their numbers in it only where they are of the
same project.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction
from django.db.models import Q

from jobs.live.channel import publish_many_on_commit
from jobs.models import Job
from jobs.scheduling.causes import Cause
from jobs.scheduling.snapshot import Preempt, Wait
from jobs.statuses import JobStatus

# Whoever waits further back in a pool than so is told the class of the cause only: sentences with
# numbers change with each start, and nobody acts on them there. Asked, the portal says it exactly.
TOLD_EXACTLY = 200
# More jobs than these are not named in one question.
_NAMED_AT_ONCE = 5000
# Rows in one transaction. All of a deep queue in one would outlast what a transaction may.
_AT_ONCE = 1000


def tell_waits(waits: Iterable[Wait | Preempt], pools: Mapping[int, str]) -> None:
    """Store what has changed of it, in the order of the queue; jobs that left it are left alone.

    `pools` are the pools of the jobs: in each of them there are some who wait in front.
    """
    wanted = _wanted(list(waits), pools)
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(held=False)
    changed: dict[tuple[str, str], list[int]] = defaultdict(list)
    known = queued.filter(_may_have_changed(wanted)).values_list("pk", "wait_reason", "message")
    for pk, reason, message in known.iterator(chunk_size=20_000):
        told = wanted.get(pk)
        if told is not None and told != (reason, message):
            changed[told].append(pk)
    for (reason, message), numbers in changed.items():
        for begin in range(0, len(numbers), _AT_ONCE):
            with transaction.atomic():
                rows = queued.filter(pk__in=numbers[begin : begin + _AT_ONCE]).order_by("pk")
                # In the order in which others lock jobs; one that is locked is told next time.
                locked = rows.select_for_update(no_key=True, skip_locked=True)
                told_now = list(locked.values_list("pk", "project_id"))
                rows.filter(pk__in=[pk for pk, _ in told_now]).order_by().update(
                    wait_reason=reason, message=message
                )
                publish_many_on_commit(told_now)


def _wanted(
    waits: Sequence[Wait | Preempt], pools: Mapping[int, str]
) -> dict[int, tuple[str, str]]:
    """The class of each cause and its sentence, by job; none further back."""
    exactly, places = {}, Counter[str]()
    for wait in waits:
        pool = pools.get(wait.job_id, "")
        places[pool] += 1
        if places[pool] <= TOLD_EXACTLY:
            exactly[wait.job_id] = wait.cause
    told = _within_projects(exactly)
    return {
        wait.job_id: (
            str(wait.cause.reason),
            told[wait.job_id].sentence if wait.job_id in told else "",
        )
        for wait in waits
    }


def _within_projects(causes: Mapping[int, Cause]) -> Mapping[int, Cause]:
    """Those causes, each naming jobs alone that are of the same project as the one that waits."""
    naming = {number: cause for number, cause in causes.items() if cause.named}
    if not naming:
        return causes
    wanted = {*naming, *(other for cause in naming.values() for other in cause.named)}
    project_of = dict(Job.objects.filter(pk__in=wanted).values_list("pk", "project_id"))
    told = dict(causes)
    for number, cause in naming.items():
        own = project_of.get(number)
        same = {other for other in cause.named if own and project_of.get(other) == own}
        told[number] = cause.told_to(same.__contains__)
    return told


def _may_have_changed(wanted: Mapping[int, tuple[str, str]]) -> Q:
    """Leaves out, in the database, who is told the same as most and is to be: nearly all."""
    told_most = Counter(wanted.values()).most_common(1)
    others = [pk for pk, told in wanted.items() if told_most and told != told_most[0][0]]
    if not told_most or len(others) > _NAMED_AT_ONCE:
        return Q()
    (reason, message), _ = told_most[0]
    return ~Q(wait_reason=reason, message=message) | Q(pk__in=others)
