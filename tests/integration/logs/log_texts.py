"""Helpers that tests of the log's stores share: reading all of a log, and ending its attempt."""

from __future__ import annotations

from django.utils import timezone

from jobs.logs.reading import read_after
from jobs.models import Attempt


def texts(attempt: Attempt) -> list[str]:
    """List every line's text, in order."""
    found: list[str] = []
    page = read_after(attempt.pk, 0)
    found += [line.text for line in page.lines]
    while page.is_cut:
        page = read_after(attempt.pk, page.last)
        found += [line.text for line in page.lines]
    return found


def end(attempt: Attempt) -> None:
    """Let the attempt have ended by now."""
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=timezone.now(), stop_reason="COMPLETED")
