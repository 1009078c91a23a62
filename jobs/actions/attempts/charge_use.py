"""Add what an attempt used to the account of its owner."""

from __future__ import annotations

from jobs.ground import clock
from jobs.models import Attempt, Job, UseAccount
from jobs.queueing.limits import PoolLimits, RequestedResources, load_queues
from jobs.scheduling.shares import Account, decayed_use


def charge_use(job: Job, attempt: Attempt) -> None:
    """Add an attempt that has ended to its owner's account; once, in the transaction of its end.

    Call it last there: it holds the account's row until the transaction is over.
    """
    requested = RequestedResources.of(job)
    # Only the pool counts here: quotas are not loaded.
    pool_limits = PoolLimits(load_queues(), [])
    shape = pool_limits.shape_of(requested)
    half_life_s = pool_limits.half_life_of(shape.pool)
    now = clock.now()
    hours = decayed_use(
        shape.units,
        attempt.created_at.timestamp(),
        (attempt.ended_at or now).timestamp(),
        now_s=now.timestamp(),
        half_life_s=half_life_s,
    )
    row, _ = UseAccount.objects.select_for_update(no_key=True).get_or_create(
        pool=shape.pool,
        project_id=requested.project_id,
        user_id=requested.user_id,
        defaults={"at": now},
    )
    before = Account(row.unit_hours, row.at.timestamp())
    row.unit_hours = before.carried_to(now.timestamp(), half_life_s) + hours
    row.at = now
    row.save(update_fields=["unit_hours", "at"])
