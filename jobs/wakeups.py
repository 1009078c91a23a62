"""Hints to the background: "look at this now". The only sender of Celery tasks.

A lost hint costs seconds, because a beat tick finds the same work in the rows.
"""

from __future__ import annotations

import logging
from typing import Literal

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from jobs.later import Later

log = logging.getLogger(__name__)
_later = Later()

Reconciler = Literal[
    "queue",
    "dependencies",
    "children",
    "provisioning",
    "running",
    "recovering",
    "stopping",
    "teardown",
    "autostop",
    "sealing",
    "orphans",
    "billing",
    "budgets",
    "infra",
    "prices",
]


def wake_on_commit(reconciler: Reconciler, row_id: int | None = None) -> None:
    """After commit, ask a worker to run one step of `reconciler` (for `row_id`, if given)."""
    transaction.on_commit(lambda: wake(reconciler, row_id), robust=True)


def wake(reconciler: Reconciler, row_id: int | None = None, *, delay_s: float = 0.0) -> None:
    """Send the hint now, or after `delay_s` seconds. Never raises when the broker is away.

    The wait is this process's: a time of day in the message would be read by another one's clock.
    """
    if delay_s > 0:
        _later.call(delay_s, lambda: _send(reconciler, row_id))
    else:
        _send(reconciler, row_id)


def _send(reconciler: Reconciler, row_id: int | None) -> None:
    args = [] if row_id is None else [row_id]
    try:
        current_app.send_task(f"jobs.{reconciler}", args=args, retry=False)
    except (OperationalError, OSError):
        log.warning("wake-up not sent", extra={"action": "wakeup_lost"}, exc_info=True)
