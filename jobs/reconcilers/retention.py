"""Forgets what has expired: used sign-in links, idempotency keys, sessions."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.sessions.models import Session
from django.utils import timezone

from jobs.actions.submit import IDEMPOTENCY_WINDOW
from jobs.models import IdempotencyKey, SignInLink

_LINKS_KEPT = timedelta(days=7)


def step() -> None:
    """One sweep. Safe to repeat."""
    now = timezone.now()
    IdempotencyKey.objects.filter(created_at__lt=now - IDEMPOTENCY_WINDOW).delete()
    SignInLink.objects.filter(expires_at__lt=now - _LINKS_KEPT).delete()
    Session.objects.filter(expire_date__lt=now).delete()
