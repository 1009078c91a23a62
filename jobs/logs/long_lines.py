"""Very long lines: they are stored in pieces, and a match may extend across two of them.

A match across belongs to the piece in which it ends. Of a piece that came short because its program
paused in the middle of a line nothing is remembered: it is matched alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

# How much of a piece is remembered until its line's next one, in bytes.
REACH = 4096
# A runner cuts lines at 32 KiB; masking may have made a piece shorter.
_LONG_BYTES = 16 * 1024
# Ranks whose long lines are awaited at once; those that wait longest are given up.
_MOST_OPEN = 32


@dataclass(frozen=True, slots=True)
class Border:
    """The stored line `line`, `offset` lines into its stretch, goes on with what ends in `before`.

    `before` begins within the line before it, never with its first character.
    """

    offset: int
    line: bytes
    before: bytes


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a piece, by where the next line after it begins or would begin."""

    at: int
    rank: bytes
    code: bytes
    text: bytes


class LongLines:
    """A finder of borders in consecutive stretches of one attempt's log."""

    def __init__(self) -> None:
        self._open: list[_End] = []

    def borders(self, text: bytes) -> list[Border]:
        """Return the borders in `text`, in order, also the one to the stretches before."""
        found: list[tuple[int, bytes]] = []
        still_open: list[_End] = []
        for end in (*self._open, *_long_pieces(text)):
            place = _next_line(text, end)
            if place is None:
                still_open.append(_End(0, end.rank, end.code, end.text))
            else:
                found.append((place, end.text))
        self._open = still_open[-_MOST_OPEN:]
        return list(_numbered(text, sorted(found)))


def end_of_match_across(pattern: Any, before: str, text: str) -> int | None:
    """Return the end in `text` of a match that begins in `before`; None if there is none.

    None as well if the part in `before` is a match in itself, which was reported already.
    """
    border = len(before)
    # Its first character is kept so that the text does not count as a line's begin.
    matches = pattern.finditer(before + text, 1)
    match = next((each for each in matches if each.end() > border), None)
    if match is None or match.start() >= border or pattern.match(before, match.start()):
        return None
    return int(match.end()) - border


def _numbered(text: bytes, borders: list[tuple[int, bytes]]) -> Iterator[Border]:
    offset = counted = 0
    for place, before in borders:
        offset += text.count(b"\n", counted, place)
        counted = place
        until = text.find(b"\n", place)
        yield Border(offset, text[place : len(text) if until < 0 else until], before)


def _long_pieces(text: bytes) -> Iterator[_End]:
    """Yield the ends of long pieces that are not the last of their lines."""
    at, window = 0, _LONG_BYTES // 2
    while at < len(text):
        # Most lines are short: hardly more than a look at each window.
        if text.find(b"\n", at, at + window) >= 0:
            at += window
            continue
        begin = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at + window)
        end = len(text) if end < 0 else end
        if end - begin >= _LONG_BYTES:
            rank, stamp = text[begin : begin + 64].split(b" ", 2)[:2]
            if stamp[:1].isupper():
                yield _End(end, rank, stamp[:1].lower(), text[end - REACH - 1 : end])
        at = max(end, at + window)


def _next_line(text: bytes, end: _End) -> int | None:
    """Return the begin of the next line of the same rank and stream; None if there is none."""
    if end.at == 0:
        rank, stamp = text[:64].split(b" ", 2)[:2]
        if rank == end.rank and stamp[:1].lower() == end.code:
            return 0
    match = _line_of(end.rank, end.code).search(text, end.at)
    return None if match is None else int(match.start()) + 1


@lru_cache(maxsize=256)
def _line_of(rank: bytes, code: bytes) -> Any:
    return re2.compile(b"\n" + rank + b" [" + code + code.upper() + b"]")
