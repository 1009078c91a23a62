"""Reading an attempt's log by line number, in both directions, from the tail and from chunks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from zstandard import ZstdError

from jobs.errors import NotFoundError
from jobs.logs import parts
from jobs.logs.lines import CODE_OF_STREAM, LogLine, line_of

log = logging.getLogger(__name__)

MAX_LIMIT = 5000
# A filter that matches next to nothing must not read a whole log in one call.
_MOST_SCANNED = 200_000
# A reader of the lines just before a line reads no further back.
_NEAR = 20_000
# Nor must long lines: what is found in one call fits into memory many times over.
_MOST_CHARS = 1024 * 1024
_BEYOND = 2**62


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter of lines: by rank, by stream, or none."""

    rank: int | None = None
    stream: str | None = None

    def matches(self, stored: str) -> bool:
        """Whether a stored line is one of them."""
        rank, stamp, _ = stored.split(" ", 2)
        if self.rank is not None and rank != str(self.rank):
            return False
        return self.stream is None or stamp[0].lower() == CODE_OF_STREAM.get(self.stream)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.rank is None and self.stream is None


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines in order, and the range that was looked at: `first` to `last`, both included.

    `last` is `first - 1` when nothing was there. `is_cut`: there may be more beyond the range.
    """

    lines: list[LogLine]
    first: int
    last: int
    is_cut: bool


EVERYTHING = Wanted()


def read_lines(
    attempt_id: int,
    *,
    after: int = 0,
    before: int | None = None,
    limit: int = 1000,
    rank: int | None = None,
    stream: str | None = None,
) -> list[LogLine]:
    """Return at most `limit` lines in order: the first ones after `after`, or, when only
    `before` is given, the last ones before it.

    Fewer when they are long (about 1 MiB of text) or rare (a filter looks at 200,000 at most);
    `read_after` and `read_before` report the range that they read.
    """
    wanted = Wanted(rank, stream)
    if before is not None and after == 0:
        return read_before(attempt_id, before, limit, wanted).lines
    lines = read_after(attempt_id, after, limit, wanted).lines
    return lines if before is None else [line for line in lines if line.number < before]


def latest(attempt_id: int, limit: int) -> list[LogLine]:
    """Return the last `limit` lines, in order; fewer if older ones are in a remote store.

    For callers in a transaction, which must neither wait for it nor fail for a damaged file.
    """
    newest_first: list[LogLine] = []
    for part in parts.backward(attempt_id, _BEYOND):
        if part.is_far or len(newest_first) >= limit:
            break
        try:
            stored = part.stored_lines()
        except (OSError, ZstdError, NotFoundError) as error:
            log.warning("not read: %s", error, extra={"action": "log_read", "attempt": attempt_id})
            break
        lines = _matching_backwards(stored, part.first_line, EVERYTHING)
        newest_first += islice(lines, limit - len(newest_first))
    return newest_first[::-1]


def read_after(
    attempt_id: int, after: int, limit: int = 1000, wanted: Wanted = EVERYTHING
) -> LogPage:
    """Return the first lines after line `after`."""
    lines: list[LogLine] = []
    last = after
    for part in parts.forward(attempt_id, after + 1):
        # What was read from the tail may come again, sealed meanwhile: each line counts once.
        begin = max(last + 1, part.first_line)
        stored = part.stored_lines()[begin - part.first_line :]
        numbered = _matching(stored, begin, wanted)
        lines += islice(numbered, limit - len(lines))
        if len(lines) >= limit:
            return LogPage(lines, after + 1, lines[-1].number, is_cut=True)
        last = part.end - 1
        if last - after >= _MOST_SCANNED or _is_much(lines):
            return LogPage(lines, after + 1, last, is_cut=True)
    return LogPage(lines, after + 1, last, is_cut=False)


def read_before(
    attempt_id: int, before: int | None, limit: int = 1000, wanted: Wanted = EVERYTHING
) -> LogPage:
    """Return the last lines before line `before`, in order; None: before the end."""
    newest_first: list[LogLine] = []
    bound = _BEYOND if before is None else before
    first, last = 1, 0
    for part in parts.backward(attempt_id, bound):
        end = min(bound, part.end)
        last = last or end - 1
        stored = part.stored_lines()[: end - part.first_line]
        numbered = _matching_backwards(stored, part.first_line, wanted)
        newest_first += islice(numbered, limit - len(newest_first))
        # As in `read_after`: the next part may hold these lines again.
        first = bound = part.first_line
        if len(newest_first) >= limit:
            first = newest_first[-1].number
            break
        if last - first >= _MOST_SCANNED or _is_much(newest_first):
            break
    return LogPage(newest_first[::-1], first, last, is_cut=first > 1)


def last_lines(attempt_id: int, before: int, limit: int, rank: int) -> list[LogLine]:
    """Return the last lines of a rank before line `before`, in order, if they are near it."""
    newest_first: list[LogLine] = []
    wanted, bound = Wanted(rank), before
    for part in parts.backward(attempt_id, before):
        stored = part.stored_lines()[: min(bound, part.end) - part.first_line]
        numbered = _matching_backwards(stored, part.first_line, wanted)
        newest_first += islice(numbered, limit - len(newest_first))
        bound = part.first_line
        if len(newest_first) >= limit or before - bound >= _NEAR:
            break
    return newest_first[::-1]


def _is_much(lines: list[LogLine]) -> bool:
    return sum(len(line.text) for line in lines) > _MOST_CHARS


def _matching(stored: list[str], first: int, wanted: Wanted) -> Iterator[LogLine]:
    for number, text in enumerate(stored, first):
        if wanted.everything or wanted.matches(text):
            yield line_of(number, text)


def _matching_backwards(stored: list[str], first: int, wanted: Wanted) -> Iterator[LogLine]:
    for offset in reversed(range(len(stored))):
        if wanted.everything or wanted.matches(stored[offset]):
            yield line_of(first + offset, stored[offset])
