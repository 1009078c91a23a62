"""Very long lines: they are kept in pieces, and what is looked for may lie across two of them.

A match across belongs to the piece in which it ends. Of a piece that came short because its program
paused in the middle of a line nothing is remembered: it stands alone.
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
    """Finds borders in stretches of one attempt's log, which come one after the other."""

    def __init__(self) -> None:
        self._open: list[_End] = []

    def borders(self, text: bytes) -> list[Border]:
        """Those in `text`, in order, between it and the stretches before included."""
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
    """Where in `text` a match ends that begins in `before`; None when there is none.

    Nor is there one where what `before` has of it is a match in itself: that was told already.
    """
    border = len(before)
    # Its first character stands there so that it is no line's begin.
    matches = pattern.finditer(before + text, 1)
    match = next((each for each in matches if each.end() > border), None)
    if match is None or match.start() >= border or pattern.match(before, match.start()):
        return None
    return int(match.end()) - border


def _numbered(text: bytes, places: list[tuple[int, bytes]]) -> Iterator[Border]:
    offset = counted = 0
    for place, before in places:
        offset += text.count(b"\n", counted, place)
        counted = place
        until = text.find(b"\n", place)
        yield Border(offset, text[place : len(text) if until < 0 else until], before)


def _long_pieces(text: bytes) -> Iterator[_End]:
    """The ends of long pieces that are not the last of their lines."""
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
    """Where the next line of the same rank and stream begins."""
    if end.at == 0:
        rank, stamp = text[:64].split(b" ", 2)[:2]
        if rank == end.rank and stamp[:1].lower() == end.code:
            return 0
    match = _line_of(end.rank, end.code).search(text, end.at)
    return None if match is None else int(match.start()) + 1


@lru_cache(maxsize=256)
def _line_of(rank: bytes, code: bytes) -> Any:
    return re2.compile(b"\n" + rank + b" [" + code + code.upper() + b"]")
