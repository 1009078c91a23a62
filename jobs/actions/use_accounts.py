"""Who has used how much: written when an attempt ends, read with what still runs for a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from jobs import clock
from jobs.actions.queue_places import Asked, Places, load_queues
from jobs.models import Attempt, Job, UseAccount
from jobs.scheduling.shares import Account, decayed_use, promised_use
from jobs.scheduling.snapshot import QueuedJob, Share


def charge_use(job: Job, attempt: Attempt) -> None:
    """Add an attempt that has ended to its owner's account; once, in the transaction of its end.

    Call it last there: it holds the account's row until the transaction is over.
    """
    asked = Asked.of(job)
    # Of what a place has only its pool counts here: no quota is asked for.
    places = Places(load_queues(), [])
    shape = places.shape_of(asked)
    half_life_s = places.half_life_of(shape.pool)
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
        project_id=asked.project_id,
        user_id=asked.user_id,
        defaults={"at": now},
    )
    before = Account(row.unit_hours, row.at.timestamp())
    row.unit_hours = before.carried_to(now.timestamp(), half_life_s) + hours
    row.at = now
    row.save(update_fields=["unit_hours", "at"])


def used_by_persons(
    running: Iterable[tuple[Asked, float, float | None]], places: Places, now_s: float
) -> dict[tuple[str, int, int], float]:
    """Unit-hours by (pool, project, person): of the past, and what runs may still use.

    `running` are jobs with their begin and, if it is known, their end.
    """
    used: dict[tuple[str, int, int], float] = defaultdict(float)
    for row in UseAccount.objects.all():
        account = Account(row.unit_hours, row.at.timestamp())
        left = account.carried_to(now_s, places.half_life_of(row.pool))
        used[row.pool, row.project_id, row.user_id] += left
    half_lives: dict[str, float] = {}  # looked up once a pool: thousands may run there
    for asked, begin_s, ends_s in running:
        shape = places.shape_of(asked)
        half_life_s = half_lives.get(shape.pool)
        if half_life_s is None:
            half_life_s = half_lives[shape.pool] = places.half_life_of(shape.pool)
        ran = decayed_use(shape.units, begin_s, now_s, now_s=now_s, half_life_s=half_life_s)
        promised = promised_use(shape.units, None if ends_s is None else ends_s - now_s)
        used[shape.pool, asked.project_id, asked.user_id] += ran + promised
    return dict(used)


def shares_of(
    waiting: Iterable[QueuedJob],
    persons: Mapping[tuple[str, int, int], float],
    weights: Mapping[int, float],
) -> dict[tuple[str, int], Share]:
    """Of each project that has used a pool, or waits for one; by pool and project."""
    used: dict[tuple[str, int], float] = defaultdict(float)
    for (pool, project_id, _), unit_hours in persons.items():
        used[pool, project_id] += unit_hours
    both = {*used, *((job.shape.pool, job.project_id) for job in waiting)}
    return {
        (pool, project_id): Share(used[pool, project_id], weights.get(project_id, 1.0))
        for pool, project_id in both
    }
