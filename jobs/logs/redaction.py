"""Keeping out of stored text what nobody may read there: tokens of the portal, values of secrets.

Masked are the values that an attempt was given, and the forms that `jobs.logs.needles` knows, in
its lines, reports and messages, before anything is stored. What a program itself has changed
(reversed, cut up, encrypted) nobody can find.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from jobs.logs.needles import LEAST_CHARS, needles_of

MASK = "***"
# API tokens, those of attempts and of their programs, by their public prefixes and the shape of
# what follows.
_TOKEN = re.compile(r"\b(mp[ajt]_)[A-Za-z0-9_-]{40,64}")
_PREFIXES = ("mpa_", "mpj_", "mpt_")
# The start of a value at the end of a piece is masked from this length on, before anybody knows.
_LEAST_START = 3
_MOST_OPEN = 20


class OpenEnd(NamedTuple):
    """The last piece of a line ended after the first `length` characters of this needle."""

    needle: int
    length: int


class Redaction:
    """Masks tokens of the portal, and these values, in what one attempt tells."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # Longest first: of two that begin alike the longer one is masked whole.
        found = {needle for value in values for needle in needles_of(value)}
        self._needles = sorted(found, key=lambda each: (-len(each), each))
        self._longest = max(map(len, self._needles), default=0)
        self._pattern = _pattern(self._needles)

    def __bool__(self) -> bool:
        return bool(self._needles)

    def text(self, text: str) -> str:
        """`text`, with nothing of it left."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        return redacted(text)

    def excerpt(self, text: str) -> str:
        """Likewise a text that somebody has cut out of a longer one, and put together of pieces.

        So each of its lines may begin or end within a value.
        """
        if not self._needles:
            return redacted(text)
        spans = [found.span() for found in self._found(text)] + self._across_lines(text)
        begin = 0
        for line in text.split("\n"):
            spans += [(begin, begin + length) for length in self._ends_at_the_start(line)]
            end = begin + len(line)
            cut = (each.length for each in self._open_ends(line) if each.length >= LEAST_CHARS)
            spans += [(end - length, end) for length in cut]
            begin = end + 1
        return redacted(_masked(text, spans))

    def piece(self, text: str, before: list[OpenEnd], *, more: bool) -> tuple[str, list[OpenEnd]]:
        """Likewise a piece of a line that was cut; and where it ends within a value, if it does.

        `before` is what the piece before it gave; `more`: this one is not the last.
        """
        if not before and not more:
            return self.text(text), []
        spans = [found.span() for found in self._found(text)]
        after: list[OpenEnd] = []
        for end in before:
            rest = (
                self._needles[end.needle][end.length :] if end.needle < len(self._needles) else ""
            )
            if rest and text.startswith(rest):
                spans.append((0, len(rest)))
            elif more and rest.startswith(text):
                spans.append((0, len(text)))
                after.append(OpenEnd(end.needle, end.length + len(text)))
        if more:
            fresh = self._open_ends(text)
            long = [end.length for end in fresh if end.length >= _LEAST_START]
            spans += [(len(text) - length, len(text)) for length in long]
            after += fresh
        return redacted(_masked(text, spans)), after[:_MOST_OPEN]

    def _found(self, text: str) -> Iterable[re.Match[str]]:
        return self._pattern.finditer(text) if self._pattern is not None else ()

    def _across_lines(self, text: str) -> list[tuple[int, int]]:
        """Where values stand once line ends are left out."""
        places = [place for place, character in enumerate(text) if character != "\n"]
        if len(places) == len(text):
            return []
        flat = self._found(text.replace("\n", ""))
        return [(places[found.start()], places[found.end() - 1] + 1) for found in flat]

    def _open_ends(self, text: str) -> list[OpenEnd]:
        """Where needles begin near the end of `text` and go on beyond it; the longest first."""
        ends = []
        for number, needle in enumerate(self._needles):
            begin = text.find(needle[0], max(0, len(text) - len(needle) + 1))
            while begin >= 0:
                if needle.startswith(text[begin:]):
                    ends.append(OpenEnd(number, len(text) - begin))
                begin = text.find(needle[0], begin + 1)
        return sorted(ends, key=lambda end: -end.length)[:_MOST_OPEN]

    def _ends_at_the_start(self, text: str) -> list[int]:
        """How much of a needle's end `text` begins with, from LEAST_CHARS on."""
        lengths = []
        head = text[: self._longest]
        for needle in self._needles:
            end = head.find(needle[-LEAST_CHARS:])
            if end >= 0 and needle.endswith(head[: end + LEAST_CHARS]):
                lengths.append(end + LEAST_CHARS)
        return lengths


def redacted(text: str) -> str:
    """`text` with every token of the portal's masked, its prefix kept."""
    if not any(prefix in text for prefix in _PREFIXES):
        return text
    return _TOKEN.sub(r"\1***", text)


class RedactionCache:
    """The redactions of the attempts that spoke last. Threads may share it."""

    def __init__(self, most: int = 200) -> None:
        self._most = most
        self._by_attempt: OrderedDict[int, Redaction] = OrderedDict()
        self._lock = Lock()

    def get(self, attempt_id: int) -> Redaction | None:
        """The attempt's, if it is still here."""
        with self._lock:
            if attempt_id not in self._by_attempt:
                return None
            self._by_attempt.move_to_end(attempt_id)
            return self._by_attempt[attempt_id]

    def put(self, attempt_id: int, redaction: Redaction) -> None:
        """Keep it, instead of the one that was not asked for longest."""
        with self._lock:
            self._by_attempt[attempt_id] = redaction
            while len(self._by_attempt) > self._most:
                self._by_attempt.popitem(last=False)


def _pattern(needles: list[str]) -> re.Pattern[str] | None:
    """One pattern for all of them, in their order."""
    if not needles:
        return None
    return re.compile("|".join(map(re.escape, needles)))


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with a mask in place of each span, of those that overlap one."""
    parts: list[str] = []
    done = 0
    for begin, end in sorted(spans):
        if end <= done:
            continue
        if begin > done or not parts:
            parts += [text[done:begin], MASK]
        done = end
    return "".join([*parts, text[done:]])


NO_SECRETS = Redaction()
