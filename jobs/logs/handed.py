"""What of an attempt's text has to be masked: the values of secrets that it was given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet

from jobs.logs.redaction import NO_SECRETS, OpenEnd, Redaction, RedactionCache
from jobs.models import Attempt, HandedSecrets
from jobs.seals import unsealed

_cache = RedactionCache()


def about_attempt(attempt_id: int) -> str:
    """What the seal of an attempt's secrets says it is about."""
    return f"attempt {attempt_id}"


def values_handed(row: HandedSecrets) -> dict[str, str]:
    """Environment variable -> value. SecretsUnavailableError: no key opens them."""
    values: dict[str, str] = json.loads(unsealed(row.sealed, about=about_attempt(row.pk)))
    return values


def redaction_of(attempt: Attempt) -> Redaction:
    """What to mask in what `attempt` tells. SecretsUnavailableError: then nothing may be stored."""
    if not attempt.job.spec.get("secrets"):
        return NO_SECRETS
    known = _cache.get(attempt.pk)
    if known is not None:
        return known
    row = HandedSecrets.objects.filter(pk=attempt.pk).first()
    if row is None:
        # It may still be given some.
        return NO_SECRETS
    redaction = Redaction(values_handed(row).values())
    _cache.put(attempt.pk, redaction)
    return redaction


class LineMask:
    """Masks the lines of one attempt that arrive together, also values cut in two.

    Use it in a transaction that holds the lock of the attempt's log, and `save` it there.
    """

    def __init__(self, attempt: Attempt | None) -> None:
        """`attempt`: None for one whose job has no secrets."""
        self._attempt = attempt
        self._redaction = redaction_of(attempt) if attempt else NO_SECRETS
        self._open_ends: dict[str, list[Any]] = {}
        if self._redaction:
            self._open_ends = self._rows().values_list("open_ends", flat=True).first() or {}
        self._is_changed = False

    def text(self, frame: dict[str, Any]) -> str:
        """What may be stored of a frame of kind line."""
        text: str = frame["text"]
        if not self._redaction:
            return self._redaction.text(text)
        of_whom = f"{frame['rank']} {frame['stream']}"
        before = [OpenEnd(*each) for each in self._open_ends.pop(of_whom, ())]
        shown, after = self._redaction.piece(text, before, more=frame.get("more", False))
        if after:
            self._open_ends[of_whom] = after
        self._is_changed |= bool(before or after)
        return shown

    def save(self) -> None:
        """Keep where lines go on."""
        if self._is_changed:
            self._rows().update(open_ends=self._open_ends)

    def _rows(self) -> QuerySet[HandedSecrets]:
        return HandedSecrets.objects.filter(pk=self._attempt)


@contextmanager
def masked_errors(attempt: Attempt) -> Iterator[None]:
    """What is raised inside tells nothing of the attempt's secrets, nor does what caused it."""
    try:
        yield
    except Exception as error:
        redaction = redaction_of(attempt)
        cause: BaseException | None = error if redaction else None
        while cause is not None:
            cause.args = tuple(
                redaction.excerpt(each) if isinstance(each, str) else each for each in cause.args
            )
            cause = cause.__cause__ or cause.__context__
        raise
