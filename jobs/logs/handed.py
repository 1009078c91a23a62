"""Build the masks of an attempt: those of all tokens, and of the secrets that it received."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from cryptography.fernet import Fernet, InvalidToken

from jobs.attempt_tokens import open_lines_key
from jobs.ground.seals import unsealed
from jobs.logs.redaction import Redaction, RedactionCache
from jobs.models import Attempt, HandedSecrets

_cache = RedactionCache()
# Tokens are known by their shape.
_WITHOUT_VALUES = Redaction()


class AttemptKey(NamedTuple):
    """The ids that an attempt's keys derive from, and whether its job names secrets."""

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
    if not key.has_secrets:
        return _WITHOUT_VALUES
    known = _cache.get(key)
    if known is not None:
        return known
    row = HandedSecrets.objects.filter(pk=key.attempt_id).first()
    if row is None:
        # Do not cache before the secrets are stored.
        return _WITHOUT_VALUES
    redaction = Redaction(values_handed(row).values())
    _cache.put(key, redaction)
    return redaction


class LineMask:
    """A mask for a request of an attempt: its lines, including values split between pieces of a
    line, and excerpts.

    `open_ends` holds, by rank and stream, the end of the last piece if a value may begin in it:
    sealed, so that the database has no text that may be of a secret. It is updated in place; store
    it with the lines.
    """

    def __init__(self, key: AttemptKey, open_ends: dict[str, str]) -> None:
        self._redaction = redaction_for(key)
        self.excerpt = self._redaction.excerpt
        self._open_ends = open_ends
        self._seal = Fernet(urlsafe_b64encode(open_lines_key(key.job_id, key.number)))

    def texts(self, frames: Sequence[dict[str, Any]]) -> list[str]:
        """Return the texts to store of line frames, in order."""
        shown: dict[int, str] = {}
        whole: list[int] = []
        for place, frame in enumerate(frames):
            more = frame.get("more", False)
            of_whom = f"{frame['rank']} {frame['stream']}"
            before = self._opened(self._open_ends.pop(of_whom, None))
            if not more and not before:
                whole.append(place)
                continue
            shown[place], after = self._redaction.piece(frame["text"], before, more=more)
            if after:
                raw = after.encode(errors="surrogatepass")
                self._open_ends[of_whom] = self._seal.encrypt(raw).decode()
        masked = self._redaction.texts([frames[place]["text"] for place in whole])
        shown.update(zip(whole, masked, strict=True))
        return [shown[place] for place in range(len(frames))]

    def _opened(self, content: object) -> str:
        """Return the text of a sealed end; "" if it is not one of this version's."""
        try:
            raw = self._seal.decrypt(content) if isinstance(content, str) else b""
        except InvalidToken:
            return ""
        return raw.decode(errors="surrogatepass")


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
