"""Places in a job's log: `attempt:line`, the same in REST pages, SSE ids and permalinks."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobs.errors import InvalidCursorError

_PATTERN = re.compile(r"([0-9]{1,9}):([0-9]{1,18})\Z")


class Cursor(NamedTuple):
    """Line `line` of attempt number `attempt`. Cursors compare in the order of the log."""

    attempt: int
    line: int

    def __str__(self) -> str:
        return f"{self.attempt}:{self.line}"


START = Cursor(0, 0)


def parse(text: str) -> Cursor:
    """Parse a cursor; InvalidCursorError if `text` is none."""
    found = _PATTERN.match(text)
    if found is None:
        raise InvalidCursorError(f"{text[:40]!r} is not a place in a log, such as 1:42.")
    return Cursor(int(found[1]), int(found[2]))
