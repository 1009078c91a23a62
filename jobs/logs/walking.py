"""Finding needles in a text, also where the text begins or ends within one.

A needle is followed byte by byte, through any mixture of the writings of its characters. That is
slow, so RE2 first finds where a needle may begin; in nearly every text there is no such place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import re2

from jobs.logs.needles import LEAST_CHARS, Needle

Span = tuple[int, int]
# So many characters of each needle RE2 looks for.
_HEAD_CHARS = 12
# A pattern that needs more is refused: then every byte is followed.
_MEMORY_BYTES = 64 * 1024 * 1024


class Position(NamedTuple):
    """How far a needle was followed: `offset` bytes into this writing of its character `char`."""

    needle: int
    char: int
    writing: int = 0
    offset: int = 0


# Position -> where in the text its needle began.
Active = dict[Position, int]


class Needles:
    """Needles that are looked for together. Positions count them in their order."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._needles = list(needles)
        sizes = (sum(len(each.writings[0]) for each in needle) for needle in self._needles)
        self._most_bytes = max(sizes, default=0)
        begins = (Position(number, 0) for number in range(len(self._needles)))
        self._starts = self._by_first_byte(begins)

    def next_head(self, raw: bytes, begin: int = 0) -> int:
        """Return where a needle may begin, from `begin` on; -1: nowhere."""
        if self._heads is None:
            return begin if begin < len(raw) else -1
        match = self._heads.search(raw, begin)
        return int(match.start()) if match else -1

    def may_hold_part(self, raw: bytes) -> bool:
        """Whether there may be LEAST_CHARS or more of a needle's begin or end."""
        return self._edges is None or self._edges.search(raw) is not None

    def found(self, raw: bytes) -> Iterator[Span]:
        """Return where whole needles are; of those that overlap, the first."""
        at = self.next_head(raw)
        while at >= 0:
            begins = dict.fromkeys(self._starts.get(raw[at], ()), at)
            end, _ = self._follow(raw, at, begins)
            if end:
                yield at, end
            at = self.next_head(raw, end or at + 1)

    def open_ends(self, raw: bytes) -> Active:
        """Return the needles that begin in `raw` and may go on beyond it; the longest first."""
        active: Active = {}
        for at in range(max(0, len(raw) - self._most_bytes), len(raw)):
            begins = self._starts.get(raw[at])
            if begins:
                active |= dict.fromkeys(begins, at)
            if active:
                active, _ = self._step(active, raw[at])
        return active

    def go_on(self, raw: bytes, before: Iterable[Position]) -> tuple[int, list[Position]]:
        """Return where needles end that were followed so far before, and those that still go on."""
        known = dict.fromkeys(filter(self._is_known, before), 0)
        end, active = self._follow(raw, 0, known)
        return end, list(active)

    def end_of_rest(self, raw: bytes) -> int:
        """Return where the end of a needle ends, LEAST_CHARS or more, with which `raw` begins."""
        inner = dict.fromkeys(self._inner.get(raw[0], ()), 0) if raw else {}
        return self._follow(raw, 0, inner)[0]

    def length(self, needle: int) -> int:
        """Return of how many characters the needle is."""
        return len(self._needles[needle])

    @cached_property
    def _heads(self) -> Any:
        return _compiled(needle[:_HEAD_CHARS] for needle in self._needles)

    @cached_property
    def _edges(self) -> Any:
        edges = (each for n in self._needles for each in (n[:LEAST_CHARS], n[-LEAST_CHARS:]))
        return _compiled(edges)

    @cached_property
    def _inner(self) -> dict[int, list[Position]]:
        """Positions from which LEAST_CHARS or more are left."""
        return self._by_first_byte(
            Position(number, char)
            for number, needle in enumerate(self._needles)
            for char in range(1, len(needle) - LEAST_CHARS + 1)
        )

    def _by_first_byte(self, positions: Iterable[Position]) -> dict[int, list[Position]]:
        found: dict[int, list[Position]] = {}
        for position in positions:
            for byte in self._needles[position.needle][position.char].by_first:
                found.setdefault(byte, []).append(position)
        return found

    def _is_known(self, position: Position) -> bool:
        """Whether there is such a position: it was stored, and other needles may be known now."""
        number, char, writing, offset = position
        if number >= len(self._needles) or char >= len(self._needles[number]):
            return False
        writings = self._needles[number][char].writings
        return writing < len(writings) and offset < len(writings[writing])

    def _follow(self, raw: bytes, at: int, active: Active) -> tuple[int, Active]:
        """Return where the longest of them ends (0: none does), and those left at the end."""
        end = 0
        while active and at < len(raw):
            active, ended = self._step(active, raw[at])
            at += 1
            end = at if ended else end
        return end, active

    def _step(self, active: Active, byte: int) -> tuple[Active, bool]:
        """Return where the needles are after one byte more, and whether one of them ended."""
        after: Active = {}
        ended = False
        for (number, char, writing, offset), begin in active.items():
            needle = self._needles[number]
            writings = needle[char].writings
            if offset:
                chosen = [writing] if writings[writing][offset] == byte else []
            else:
                chosen = needle[char].by_first.get(byte, [])
            for each in chosen:
                if offset + 1 < len(writings[each]):
                    after.setdefault(Position(number, char, each, offset + 1), begin)
                elif char + 1 < len(needle):
                    after.setdefault(Position(number, char + 1), begin)
                else:
                    ended = True
        return after, ended


def _compiled(needles: Iterable[Needle]) -> Any:
    """Return one pattern for all of them; None where it would be too large."""
    parts = {b"".join(each.pattern for each in needle) for needle in needles}
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY_BYTES
    # Without needles: what nothing matches.
    pattern = b"|".join(sorted(parts)) or rb"[^\x00-\xff]"
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
