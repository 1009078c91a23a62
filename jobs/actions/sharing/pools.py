"""Making, changing and deleting pools: machines of one backend that queues share out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from jobs.actions.sharing.queue_input import Reading, makes_or_changes, plan_queue_again
from jobs.audit.record import record
from jobs.backends import registry
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Job, Pool
from jobs.permissions import Actor, require_sharing


@dataclass(frozen=True, slots=True)
class PoolChange:
    """The changes to a pool; None leaves a value as it is.

    `caps` as {"nodes": 8, "gpus:H100": 64}, all of them anew; `patience` and `half_life` as "12h".
    `reclaim` and `preempts_by_rank`: whether jobs there are stopped for others, and by which right.
    """

    backend: str | None = None
    caps: Mapping[str, Any] | None = None
    patience: str | None = None
    half_life: str | None = None
    reclaim: bool | None = None
    preempts_by_rank: bool | None = None


@makes_or_changes
@transaction.atomic
def set_pool(actor: Actor, name: str, change: PoolChange) -> Pool:
    """Make the pool `name`, or change what is named of it. It holds at once, also for what waits.

    InvalidSettingsError names everything that is wrong.
    """
    require_sharing(actor)
    pool = Pool.objects.select_for_update(no_key=True).filter(name=name).first()
    reading = Reading()
    before = _terms(pool) if pool else None
    made = pool or Pool(name=reading.name(name))
    _read(reading, made, change, is_new=pool is None)
    reading.require_none()
    made.save()
    record(actor, "set_pool", made, before=before, after=_terms(made))
    plan_queue_again()
    return made


@transaction.atomic
def delete_pool(actor: Actor, name: str) -> None:
    """Forget a pool with the quotas that hold in it alone. ConflictError while queues use it."""
    require_sharing(actor)
    pool = Pool.objects.select_for_update().filter(name=name).first()
    if pool is None:
        raise NotFoundError(f"There is no pool {name}.")
    if queues := list(pool.queues.order_by("name").values_list("name", flat=True)):
        raise ConflictError(
            f"Pool {name} is used by the queues {', '.join(queues)}. Give them another pool, or "
            "none (`mportal admin queue set NAME --pool none`), then delete it."
        )
    record(actor, "delete_pool", pool, before=_terms(pool))
    pool.delete()
    plan_queue_again()


def _terms(pool: Pool) -> dict[str, Any]:
    return {
        "backend": pool.backend_name,
        "caps": pool.caps,
        "patience_s": pool.patience_s,
        "half_life_s": pool.half_life_s,
        "reclaim": pool.reclaim,
        "preempts_by_rank": pool.preempts_by_rank,
    }


def _read(reading: Reading, pool: Pool, change: PoolChange, *, is_new: bool) -> None:
    # The present backend may be gone, which prevents no other change.
    if is_new or change.backend not in {None, pool.backend_name}:
        backend = _backend(reading, change)
        if not is_new:
            _refuse_moving(reading, pool, backend)
        pool.backend_name = backend
    if change.caps is not None:
        pool.caps = reading.caps(change.caps, of_machines=True)
    if change.patience is not None:
        pool.patience_s = reading.seconds("patience", change.patience)
    if change.half_life is not None:
        pool.half_life_s = reading.seconds("half_life", change.half_life)
    if change.reclaim is not None:
        pool.reclaim = change.reclaim
    if change.preempts_by_rank is not None:
        pool.preempts_by_rank = change.preempts_by_rank


def _backend(reading: Reading, change: PoolChange) -> str:
    there = sorted(registry.names())
    if change.backend is None:
        reading.wrong("backend", f"A new pool needs one; there are: {', '.join(there)}.")
        return ""
    reading.one_of("backend", change.backend, there, "backend")
    return change.backend


def _refuse_moving(reading: Reading, pool: Pool, backend: str) -> None:
    """Refuse to change the backend while unfinished jobs of the pool were sent to the old one."""
    queues = pool.queues.values_list("name", flat=True)
    there = Job.objects.unfinished().filter(queue_name__in=queues).exclude(backend_name=backend)
    if count := there.count():
        reading.wrong(
            "backend",
            f"{count} jobs wait or run there on {pool.backend_name}. Let them end, or make another "
            "pool.",
        )
