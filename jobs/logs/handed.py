"""What of an attempt's text has to be masked: its tokens, and the secrets that it was given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jobs.attempt_tokens import attempt_token, driver_token
from jobs.logs.redaction import Redaction, RedactionCache
from jobs.logs.walking import Position
from jobs.models import Attempt, HandedSecrets
from jobs.seals import unsealed

_cache = RedactionCache()


class Teller(NamedTuple):
    """The attempt whose text is masked, by what its tokens are made of."""

    attempt_id: int
    job_id: int
    number: int
    has_secrets: bool


def about_attempt(attempt_id: int) -> str:
    """What the seal of an attempt's secrets says it is about."""
    return f"attempt {attempt_id}"


def values_handed(row: HandedSecrets) -> dict[str, str]:
    """Environment variable -> value. SecretsUnavailableError: no key opens them."""
    values: dict[str, str] = json.loads(unsealed(row.sealed, about=about_attempt(row.pk)))
    return values


def redaction_of(attempt: Attempt) -> Redaction:
    """What to mask in what `attempt` tells. SecretsUnavailableError: then nothing may be stored."""
    has_secrets = bool(attempt.job.spec.get("secrets"))
    return redaction_for(Teller(attempt.pk, attempt.job_id, attempt.number, has_secrets))


def redaction_for(teller: Teller) -> Redaction:
    """Likewise, without reading the attempt."""
    known = _cache.get(teller.attempt_id)
    if known is not None:
        return known
    values = [
        attempt_token(teller.job_id, teller.number),
        driver_token(teller.attempt_id, teller.job_id, teller.number),
    ]
    row = None
    if teller.has_secrets:
        row = HandedSecrets.objects.filter(pk=teller.attempt_id).first()
        values += values_handed(row).values() if row else []
    redaction = Redaction(values)
    # Where there is no row it may still be given some.
    if row is not None or not teller.has_secrets:
        _cache.put(teller.attempt_id, redaction)
    return redaction


class LineMask:
    """Masks the lines of one attempt that arrive together, also values cut in two.

    `open_ends` says where the lines before ended within a value, by rank and stream; it is
    changed, and to be stored with the lines.
    """

    def __init__(
        self,
        redaction: Redaction,
        frames: Sequence[dict[str, Any]],
        open_ends: dict[str, list[list[int]]],
    ) -> None:
        self._redaction = redaction
        self._open_ends = open_ends
        lines = [frame for frame in frames if frame["kind"] == "line"]
        touched = redaction.touched([frame["text"] for frame in lines])
        self._touched = {id(lines[place]) for place in touched}

    def text(self, frame: dict[str, Any]) -> str:
        """What may be stored of a frame of kind line, one of those given before."""
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
    """What is raised inside tells nothing of the attempt's secrets, nor does what caused it."""
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
