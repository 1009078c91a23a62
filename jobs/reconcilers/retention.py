"""Delete what has expired: sign-in links, idempotency keys, sessions, old logs, schedule runs.

It also deletes blobs that a crash left without a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from time import monotonic

from django.conf import settings

from jobs.actions.ingest.claim_blobs import claim_blobs
from jobs.actions.jobs.submit import IDEMPOTENCY_WINDOW
from jobs.actions.projects.sweep_uploads import sweep_uploads
from jobs.errors import LogStoreAwayError
from jobs.ground import clock
from jobs.logs import blobs, removal, stores
from jobs.models import IdempotencyKey, ScheduleRun, SignInLink, UserSession
from jobs.statuses import LogStore

log = logging.getLogger(__name__)

_LINKS_KEPT = timedelta(days=7)
# Runs of schedules that made no job, or whose job was deleted.
_EMPTY_RUNS_KEPT = timedelta(days=30)
# The most that one sweep removes; the next one continues.
LOGS_A_SWEEP, CHUNKS_A_SWEEP, SWEEP_S = 500, 2000, 60.0


def step() -> None:
    """Sweep once. Safe to repeat."""
    now = clock.now()
    IdempotencyKey.objects.filter(created_at__lt=now - IDEMPOTENCY_WINDOW).delete()
    SignInLink.objects.filter(expires_at__lt=now - _LINKS_KEPT).delete()
    ScheduleRun.objects.filter(job=None, slot__lt=now - _EMPTY_RUNS_KEPT).delete()
    UserSession.objects.filter(expire_date__lt=now).delete()
    _go_on_after(_remove_old_logs)
    for store in stores.configured():
        _go_on_after(partial(_sweep_store, store))


def _remove_old_logs() -> None:
    """Remove logs of deleted projects, and those older than MPORTAL_LOG_DAYS (0: never)."""
    found = removal.of_deleted(LOGS_A_SWEEP)
    if days := settings.MPORTAL_LOG_DAYS:
        found += removal.too_old(clock.now() - timedelta(days=days), LOGS_A_SWEEP)
    for attempt_id in found:
        removal.begin(attempt_id)
        log.info("log removed", extra={"action": "log_removed", "attempt": attempt_id})
    left, until = CHUNKS_A_SWEEP, monotonic() + SWEEP_S
    for attempt_id in removal.begun():
        if left <= 0 or monotonic() > until:
            return
        try:
            left -= removal.remove_some(attempt_id, left)
        except (OSError, LogStoreAwayError) as error:
            # An error of one log must not keep the others.
            log.warning("not removed: %s", error, extra={"action": "log_removed"})


def _sweep_store(store: str) -> None:
    if claim_blobs(store):
        if store == LogStore.FILES:
            _go_on_after(sweep_uploads)
        _go_on_after(partial(blobs.sweep_deleted, store))


def _go_on_after(sweep: Callable[[], object]) -> None:
    """Log an error of one folder or store, so that the others are still swept."""
    try:
        sweep()
    except (OSError, LogStoreAwayError) as error:
        log.warning("not swept up: %s", error, extra={"action": "retention"})
