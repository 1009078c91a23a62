"""Hints to the background: "look at this now". The only sender of Celery tasks.

A lost hint costs seconds, because a beat tick finds the same work in the rows.
"""

from __future__ import annotations

import logging
from typing import Literal

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

Reconciler = Literal[
    "queue", "provisioning", "running", "recovering", "stopping", "teardown", "sealing"
]


def wake_on_commit(reconciler: Reconciler, row_id: int | None = None) -> None:
    """After commit, ask a worker to run one step of `reconciler` (for `row_id`, if given)."""
    transaction.on_commit(lambda: wake(reconciler, row_id), robust=True)


def wake(reconciler: Reconciler, row_id: int | None = None, *, delay_s: float = 0.0) -> None:
    """Send the hint now, or after `delay_s` seconds. Never raises when the broker is away."""
    args = [] if row_id is None else [row_id]
    try:
        current_app.send_task(
            f"jobs.{reconciler}", args=args, countdown=delay_s or None, retry=False
        )
    except (OperationalError, OSError):
        log.warning("wake-up not sent", extra={"action": "wakeup_lost"}, exc_info=True)
