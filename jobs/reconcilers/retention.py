"""Forgets what has expired: used sign-in links, idempotency keys, sessions.

And what a crash has left in the blob store between a file and its row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.contrib.sessions.models import Session

from jobs import clock
from jobs.actions.claim_blobs import claim_blobs
from jobs.actions.submit import IDEMPOTENCY_WINDOW
from jobs.actions.sweep_uploads import sweep_uploads
from jobs.logs import blobs
from jobs.models import IdempotencyKey, SignInLink

log = logging.getLogger(__name__)

_LINKS_KEPT = timedelta(days=7)


def step() -> None:
    """One sweep. Safe to repeat."""
    now = clock.now()
    IdempotencyKey.objects.filter(created_at__lt=now - IDEMPOTENCY_WINDOW).delete()
    SignInLink.objects.filter(expires_at__lt=now - _LINKS_KEPT).delete()
    Session.objects.filter(expire_date__lt=now).delete()
    _go_on_after(_sweep_store)


def _sweep_store() -> None:
    if claim_blobs():
        _go_on_after(sweep_uploads)
        _go_on_after(blobs.sweep_deleted)


def _go_on_after(sweep: Callable[[], object]) -> None:
    """What is wrong with one folder keeps no other from being swept."""
    try:
        sweep()
    except OSError as error:
        log.warning("not swept up: %s", error, extra={"action": "retention"})
