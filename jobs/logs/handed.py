"""Build the masks of an attempt: its tokens, and the secrets that it received."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jobs.attempt_tokens import attempt_token, driver_token
from jobs.ground.seals import unsealed
from jobs.logs.redaction import Redaction, RedactionCache
from jobs.logs.walking import Position
from jobs.models import Attempt, HandedSecrets
from monarch_client.runner.vocabulary.frames import LINE

_cache = RedactionCache()


class AttemptKey(NamedTuple):
    """The ids that an attempt's tokens derive from, and whether its job names secrets."""

    attempt_id: int
    job_id: int
    number: int
    has_secrets: bool


def about_attempt(attempt_id: int) -> str:
    """Return the context that the seal of an attempt's secrets is bound to."""
    return f"attempt {attempt_id}"


def values_handed(row: HandedSecrets) -> dict[str, str]:
    """Return environment variable -> value. SecretsUnavailableError: no key opens them."""
    values: dict[str, str] = json.loads(unsealed(row.sealed, about=about_attempt(row.pk)))
    return values


def redaction_of(attempt: Attempt) -> Redaction:
    """Return the masks of what the attempt prints and reports.

    SecretsUnavailableError: no key opens its secrets, so nothing may be stored.
    """
    has_secrets = bool(attempt.job.request.secrets)
    return redaction_for(AttemptKey(attempt.pk, attempt.job_id, attempt.number, has_secrets))


def redaction_for(key: AttemptKey) -> Redaction:
    """Return the masks of the attempt with this key, without reading its row."""
    known = _cache.get(key)
    if known is not None:
        return known
    values = [
        attempt_token(key.job_id, key.number),
        driver_token(key.attempt_id, key.job_id, key.number),
    ]
    row = None
    if key.has_secrets:
        row = HandedSecrets.objects.filter(pk=key.attempt_id).first()
        values += values_handed(row).values() if row else []
    redaction = Redaction(values)
    # Do not cache before the secrets are stored.
    if row is not None or not key.has_secrets:
        _cache.put(key, redaction)
    return redaction


class LineMask:
    """A mask for a batch of lines of one attempt, including values split between lines.

    `open_ends` holds, by rank and stream, how far into values the previous lines ended. It is
    updated in place; store it with the lines.
    """

    def __init__(
        self,
        redaction: Redaction,
        frames: Sequence[dict[str, Any]],
        open_ends: dict[str, list[list[int]]],
    ) -> None:
        self._redaction = redaction
        self._open_ends = open_ends
        lines = [frame for frame in frames if frame["kind"] == LINE]
        touched = redaction.touched([frame["text"] for frame in lines])
        self._touched = {id(lines[place]) for place in touched}

    def text(self, frame: dict[str, Any]) -> str:
        """Return the text to store of a line frame, one of those given to the constructor."""
        text: str = frame["text"]
        more = frame.get("more", False)
        if not more and not self._open_ends:
            return self._redaction.text(text) if id(frame) in self._touched else text
        of_whom = f"{frame['rank']} {frame['stream']}"
        before = [Position(*each) for each in self._open_ends.pop(of_whom, ())]
        if not more and not before:
            return self._redaction.text(text) if id(frame) in self._touched else text
        shown, after = self._redaction.piece(text, before, more=more)
        if after:
            self._open_ends[of_whom] = [list(each) for each in after]
        return shown


@contextmanager
def masked_errors(attempt: Attempt) -> Iterator[None]:
    """Mask the attempt's values in errors that are raised inside, and in their causes."""
    try:
        yield
    except Exception as error:
        redaction = redaction_of(attempt)
        cause: BaseException | None = error
        while cause is not None:
            cause.args = tuple(
                redaction.excerpt(each) if isinstance(each, str) else each for each in cause.args
            )
            cause = cause.__cause__ or cause.__context__
        raise
