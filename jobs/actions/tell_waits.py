"""Writing down why jobs wait: what the plan says, beside the job, only where it has changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from django.db import transaction

from jobs.live.channel import publish_many_on_commit
from jobs.models import Job
from jobs.scheduling.snapshot import Preempt, Wait
from jobs.statuses import JobStatus

# Whoever waits further back in a pool than so is told the class of the cause only: sentences with
# numbers change with each start, and nobody acts on them there. Asked, the portal says it exactly.
TOLD_EXACTLY = 200
# Rows in one transaction. All of a deep queue in one would outlast what a transaction may.
_AT_ONCE = 1000


def tell_waits(waits: Iterable[Wait | Preempt], pools: Mapping[int, str]) -> None:
    """Store what has changed of it, in the order of the queue; jobs that left it are left alone.

    `pools` are the pools of the jobs: in each of them there are some who wait in front.
    """
    wanted, places = {}, Counter[str]()
    for wait in waits:
        pool = pools.get(wait.job_id, "")
        places[pool] += 1
        sentence = wait.cause.sentence if places[pool] <= TOLD_EXACTLY else ""
        wanted[wait.job_id] = (str(wait.cause.reason), sentence)
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(held=False)
    changed: dict[tuple[str, str], list[int]] = defaultdict(list)
    known = queued.values_list("pk", "wait_reason", "message").iterator(chunk_size=20_000)
    for pk, reason, message in known:
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
