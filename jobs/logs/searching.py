"""Searching an attempt's whole log, a bounded stretch of it at a time."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from jobs.logs import parts
from jobs.logs.lines import LogLine, line_of
from jobs.logs.match_pool import MatchProcess

# One request goes no further than this, so that it holds neither a thread nor a process for long.
MOST_BYTES = 256 * 1024 * 1024
MOST_S = 1.0
_MOST_CHARS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that matches; `spans` count characters of its text without escape sequences."""

    line: LogLine
    spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What lines up to `last` hold. `is_cut`: lines behind it were not looked at."""

    found: list[FoundLine]
    last: int
    is_cut: bool


class Budget:
    """What one request may still do. The first part is looked at however little is left."""

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


def search_after(process: MatchProcess, attempt_id: int, after: int, budget: Budget) -> Stretch:
    """The lines after line `after` that match what `process` was asked."""
    found: list[FoundLine] = []
    last = after
    for part in parts.forward(attempt_id, after + 1):
        begin = max(last + 1, part.first_line)
        hits, is_cut, raw_bytes = process.hits(part.stored(), part.first_line, begin, budget.hits)
        new = [FoundLine(line_of(hit.number, hit.stored), hit.spans) for hit in hits]
        found += new
        budget.spend(new, raw_bytes)
        # The part may hold further hits behind the last one.
        last = new[-1].line.number if is_cut else part.end - 1
        if is_cut or budget.is_spent:
            return Stretch(found, last, is_cut=True)
    return Stretch(found, last, is_cut=False)
