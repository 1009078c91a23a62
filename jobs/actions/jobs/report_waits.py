"""Writing down why jobs wait: what the plan says, beside the job, only where it has changed.

All of a job's project read that: other jobs have their numbers in it only where they are of the
same project.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from django.db import transaction

from jobs.live.channel import publish_many_on_commit
from jobs.models import Job
from jobs.queueing.queued_rows import QueuedRow
from jobs.scheduling.causes import Cause
from jobs.scheduling.snapshot import StaysQueued
from jobs.statuses import JobStatus

# Jobs further back in a pool than this get the class of the cause only: sentences with
# numbers change with each start, and no user acts on them there. `mportal why` is exact.
REPORTED_EXACTLY = 200
# Rows in one transaction. All of a deep queue in one would outlast what a transaction may.
_AT_ONCE = 1000


# The changed reasons, class and sentence, with the jobs that get them.
Changed = Mapping[tuple[str, str], Sequence[int]]


def changed_waits(
    waits: Sequence[StaysQueued], rows: Mapping[int, QueuedRow], pools: Mapping[int, str]
) -> Changed:
    """Return the causes that differ from the stored ones, in scheduling order.

    `rows` are those that were read for the plan. `pools` are the pools of the jobs: in each of them
    there are some who wait in front.
    """
    changed: dict[tuple[str, str], list[int]] = defaultdict(list)
    exactly: dict[int, Cause] = {}
    # Most wait for what others wait for: one answer for all of them.
    briefly: dict[int, tuple[str, str]] = {}
    in_front = Counter[str]()

    def compare(number: int, reported: tuple[str, str]) -> None:
        row = rows.get(number)
        if row is None or row.wait_reason != reported[0] or row.message != reported[1]:
            changed[reported].append(number)

    for wait in waits:
        number, cause = wait.job_id, wait.cause
        pool = pools.get(number, "")
        if in_front[pool] < REPORTED_EXACTLY:
            in_front[pool] += 1
            exactly[number] = cause
            continue
        reported = briefly.get(id(cause))
        if reported is None:
            reported = briefly[id(cause)] = (str(cause.reason), "")
        compare(number, reported)
    for number, cause in _within_projects(exactly).items():
        compare(number, (str(cause.reason), cause.sentence))
    return changed


def report_waits(changed: Changed) -> None:
    """Store it; jobs that left the queue, or are held, are left alone."""
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(held=False)
    for (reason, message), numbers in changed.items():
        for begin in range(0, len(numbers), _AT_ONCE):
            with transaction.atomic():
                some = queued.filter(pk__in=numbers[begin : begin + _AT_ONCE]).order_by("pk")
                # In the order in which others lock jobs; a locked one is updated next time.
                locked = some.select_for_update(no_key=True, skip_locked=True)
                updated = list(locked.values_list("pk", "project_id"))
                some.filter(pk__in=[pk for pk, _ in updated]).order_by().update(
                    wait_reason=reason, message=message
                )
                publish_many_on_commit(updated)


def _within_projects(causes: Mapping[int, Cause]) -> Mapping[int, Cause]:
    """Return the causes, each naming only jobs of the same project as the waiting job."""
    naming = {number: cause for number, cause in causes.items() if cause.named}
    if not naming:
        return causes
    wanted = {*naming, *(other for cause in naming.values() for other in cause.named)}
    project_of = dict(Job.objects.filter(pk__in=wanted).values_list("pk", "project_id"))
    reported = dict(causes)
    for number, cause in naming.items():
        own = project_of.get(number)
        same = {other for other in cause.named if own and project_of.get(other) == own}
        reported[number] = cause.visible_to(same.__contains__)
    return reported
