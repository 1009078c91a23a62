"""Making, changing and deleting queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from jobs.actions.sharing.queue_input import Reading, makes_or_changes, plan_queue_again
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Job, Pool, Queue
from jobs.models.queue import DEFAULT_QUEUE
from jobs.permissions import Actor, require_sharing
from jobs.statuses import JobStatus

MOST_RANK = 1000
NO_POOL = ""
# More numbers than these are of no use.
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class QueueChange:
    """The changes to a queue; None leaves a value as it is, NO_POOL takes it out of its pool.

    `preemptible`: whether all its jobs may be stopped for others.
    """

    rank: int | None = None
    pool: str | None = None
    preemptible: bool | None = None


@makes_or_changes
@transaction.atomic
def set_queue(actor: Actor, name: str, change: QueueChange) -> Queue:
    """Make the queue `name`, or change what is named of it. It holds at once, also for what waits.

    InvalidSettingsError names everything that is wrong.
    """
    require_sharing(actor)
    queue = Queue.objects.select_for_update(no_key=True).filter(name=name).first()
    reading = Reading()
    before = _terms(queue) if queue else None
    made = queue or Queue(name=reading.name(name))
    if change.rank is not None:
        made.rank = reading.whole("rank", change.rank, -MOST_RANK, MOST_RANK)
    if change.pool is not None:
        made.pool = _pool(reading, name, change.pool)
    if change.preemptible is not None:
        made.preemptible = change.preemptible
    reading.require_none()
    made.save()
    record(actor, "set_queue", made, before=before, after=_terms(made))
    plan_queue_again()
    return made


@transaction.atomic
def delete_queue(actor: Actor, name: str) -> None:
    """Forget a queue with its quotas. ConflictError while jobs wait or run in it.

    A job that is submitted at this very moment waits as one of the default queue.
    """
    require_sharing(actor)
    if name == DEFAULT_QUEUE:
        raise ConflictError("Jobs that name no queue wait in this one: it stays.")
    queue = Queue.objects.select_for_update().filter(name=name).first()
    if queue is None:
        raise NotFoundError(f"There is no queue {name}.")
    there = Job.objects.unfinished().filter(queue_name=name).order_by("pk")
    if numbers := list(there.values_list("pk", flat=True)[:_MOST_NAMED]):
        waiting = there.filter(status=JobStatus.QUEUED).count()
        named = ", ".join(str(number) for number in numbers)
        raise ConflictError(
            f"In queue {name} {waiting} jobs wait and {there.count() - waiting} run (the first: "
            f"{named}). Let them end, or cancel them (`mportal cancel`), then delete the queue."
        )
    record(actor, "delete_queue", queue, before=_terms(queue))
    queue.delete()
    plan_queue_again()


def _terms(queue: Queue) -> dict[str, Any]:
    pool = queue.pool.name if queue.pool else None
    return {"rank": queue.rank, "pool": pool, "preemptible": queue.preemptible}


def _pool(reading: Reading, queue_name: str, name: str) -> Pool | None:
    if name == NO_POOL:
        return None
    pool = Pool.objects.filter(name=name).first()
    if pool is None:
        reading.one_of("pool", name, Pool.objects.values_list("name", flat=True), "pool")
        return None
    there = Job.objects.unfinished().filter(queue_name=queue_name)
    if count := there.exclude(backend_name=pool.backend_name).count():
        reading.wrong(
            "pool",
            f"{count} jobs wait or run in queue {queue_name} that are not for "
            f"{pool.backend_name}, whose machines pool {name} has. Let them end first.",
        )
    return pool
