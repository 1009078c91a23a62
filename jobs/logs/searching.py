"""Searching an attempt's whole log, a bounded stretch of it at a time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Protocol

from jobs.errors import NotFoundError
from jobs.logs import parts
from jobs.logs.lines import LogLine, decompressed, line_of
from jobs.logs.long_lines import LongLines
from jobs.logs.matching import Hit, Matcher
from jobs.logs.parts import Part

# One request goes no further than this, so that it holds neither a thread nor a process for long.
MOST_BYTES = 256 * 1024 * 1024
MOST_S = 1.0
_MOST_CHARS = 1024 * 1024
# Parts that are looked at before the first one, back to the nearest sealed one; one query's worth.
_MOST_BEFORE = 4


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that matches; `spans` and `parts` are those of `jobs.logs.matching.Hit`."""

    line: LogLine
    spans: list[tuple[int, int]]
    parts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The hits in lines up to `last`. `is_cut`: lines behind it were not searched."""

    found: list[FoundLine]
    last: int
    is_cut: bool


class Looker(Protocol):
    """A searcher for a question: a `jobs.logs.match_pool.MatchProcess`, as a rule."""

    def begin_stretch(self) -> None:
        """Begin a stretch: the next piece does not follow on one that was searched."""

    def hits(
        self, payload: bytes, first: int, begin: int, limit: int
    ) -> tuple[list[Hit], bool, int]:
        """Return the first hits of a compressed piece from line `begin` on, whether later
        lines were left out, and how many bytes the piece has. It follows on the one before.
        """


class OwnLooker:
    """A searcher in this very process: for the portal's own patterns, never for a user's."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._long_lines = LongLines()

    def begin_stretch(self) -> None:
        """See `Looker`."""
        self._long_lines = LongLines()

    def hits(
        self, payload: bytes, first: int, begin: int, limit: int
    ) -> tuple[list[Hit], bool, int]:
        """See `Looker`."""
        raw = decompressed(payload)
        found, is_cut = self._matcher.hits(
            raw, first, begin=begin, limit=limit, long_lines=self._long_lines
        )
        return found, is_cut, len(raw)


class Budget:
    """The remaining work of one request. The first part is searched however little is left."""

    def __init__(self, limit: int) -> None:
        self.hits = limit
        self.bytes = 0
        self._chars = 0
        self._until = monotonic() + MOST_S

    @property
    def is_spent(self) -> bool:
        """Whether it is time to answer."""
        return (
            self.hits <= 0
            or self.bytes >= MOST_BYTES
            or self._chars >= _MOST_CHARS
            or monotonic() >= self._until
        )

    def spend(self, found: list[FoundLine], raw_bytes: int) -> None:
        """Note what one part took."""
        self.hits -= len(found)
        self.bytes += raw_bytes
        self._chars += sum(len(each.line.text) + 16 * len(each.spans) for each in found)


def search_after(looker: Looker, attempt_id: int, after: int, budget: Budget) -> Stretch:
    """Return the lines after line `after` that match the question of `looker`."""
    found: list[FoundLine] = []
    last = after
    looker.begin_stretch()
    for place, part in enumerate(parts.forward(attempt_id, after + 1)):
        if place == 0:
            _look_before(looker, part)
        begin = max(last + 1, part.first_line)
        hits, is_cut, raw_bytes = looker.hits(part.stored(), part.first_line, begin, budget.hits)
        new = [FoundLine(line_of(hit.number, hit.stored), hit.spans, hit.parts) for hit in hits]
        found += new
        budget.spend(new, raw_bytes)
        # The part may hold further hits behind the last one.
        last = new[-1].line.number if is_cut else part.end - 1
        if is_cut or budget.is_spent:
            return Stretch(found, last, is_cut=True)
    return Stretch(found, last, is_cut=False)


def _look_before(looker: Looker, part: Part) -> None:
    """Let `looker` see what is before `part`: a very long line may go on from there."""
    if part.first_line == 1:
        return
    seen: list[Part] = []
    for before in islice(parts.backward(part.attempt_id, part.first_line), _MOST_BEFORE):
        seen.append(before)
        if before.blob is not None:
            break
    for before in reversed(seen):
        # What is removed meanwhile is none of what is looked for here.
        with suppress(NotFoundError):
            looker.hits(before.stored(), before.first_line, part.first_line, 1)
