"""Find needles in a text, including those that the text's begin or end cuts off.

A needle is followed byte by byte, through any mixture of the writings of its characters. That is
slow, so RE2 first finds the offsets where a needle may begin; nearly every text has none. If a text
has so many that following them takes too long, its rest counts as found: masking too much is safe,
and logs must not be delayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import re2

from jobs.logs.needles import LEAST_CHARS, Needle

Span = tuple[int, int]
# How many first characters of each needle RE2 searches for; fewer if the pattern is too large.
_HEAD_CHARS = (64, 12, 6, 3, 2)
# A longer pattern, or one that needs more memory, is refused: RE2 would get slow.
_PATTERN_BYTES, _MEMORY_BYTES = 600_000, 64 * 1024 * 1024
# Step limits for a text, and for each of its bytes; steps that find nothing count _IN_VAIN times.
_STEPS, _STEPS_A_BYTE, _IN_VAIN = 4000, 16, 8
# How many needles, of those that began first, are followed once the steps are used up.
_FEW = 10


class Position(NamedTuple):
    """A state of matching a needle: `offset` bytes into this writing of its character `char`."""

    needle: int
    char: int
    writing: int = 0
    offset: int = 0


# Position -> where in the text its needle began.
Active = dict[Position, int]


class Needles:
    """A set of needles to search for. `Position.needle` is an index into it."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._needles = list(needles)
        self._most_bytes = _most_bytes(self._needles)
        begins = (Position(number, 0) for number in range(len(self._needles)))
        self._starts = self._by_first_byte(begins)

    def next_head(self, raw: bytes, begin: int = 0) -> int:
        """Return the next offset, from `begin` on, where a needle may begin; -1 if none."""
        if self._heads is None:
            return begin if begin < len(raw) else -1
        match = self._heads.search(raw, begin)
        return int(match.start()) if match else -1

    def may_hold_part(self, raw: bytes) -> bool:
        """Whether the text may hold the first or last LEAST_CHARS of a needle."""
        return self._edges is None or self._edges.search(raw) is not None

    def found(self, raw: bytes) -> Iterator[Span]:
        """Yield the spans of whole needles, including overlapping ones.

        If the search would take too long, the last span reaches to the end of the text.
        """
        steps = _STEPS + _STEPS_A_BYTE * len(raw)
        at = self.next_head(raw)
        while at >= 0:
            begins = dict.fromkeys(self._starts.get(raw[at], ()), at)
            end, _, taken = self._follow(raw, at, begins, steps)
            steps -= taken if end else taken * _IN_VAIN
            if steps <= 0:
                yield at, len(raw)
                return
            if end:
                yield at, end
            at = self.next_head(raw, at + 1)

    def open_ends(self, raw: bytes) -> Active:
        """Return the needles that begin in `raw` and may continue after it; the longest first."""
        active: Active = {}
        steps = _STEPS + _STEPS_A_BYTE * len(raw)
        # Needles begin only at heads, except in the last bytes, which may be shorter than a head.
        last = max(0, len(raw) - self._head_bytes)
        at = head = self.next_head(raw, max(0, len(raw) - self._most_bytes))
        at = min(at, last) if at >= 0 else last
        while at < len(raw):
            if at >= last or at == head:
                active |= dict.fromkeys(self._starts.get(raw[at], ()), at)
            if 0 <= head <= at:
                head = self.next_head(raw, at + 1)
            steps -= len(active)
            if steps < 0 and len(active) > _FEW:
                active = dict(islice(active.items(), _FEW))
            active, _ = self._step(active, raw[at])
            at = at + 1 if active or at >= last else min(head if head >= 0 else last, last)
        return active

    def go_on(self, raw: bytes, before: Iterable[Position]) -> tuple[int, list[Position]]:
        """Continue from `before` in `raw`; return the last end, and the positions still open."""
        known = dict.fromkeys(filter(self._is_known, before), 0)
        end, active, _ = self._follow(raw, 0, known, _STEPS + _STEPS_A_BYTE * len(raw))
        return end, list(active)

    def end_of_rest(self, raw: bytes) -> int:
        """Return the end of a needle's tail (LEAST_CHARS or more) that `raw` begins with, or 0."""
        inner = dict.fromkeys(self._inner.get(raw[0], ()), 0) if raw else {}
        return self._follow(raw, 0, inner, len(inner) + _STEPS + _STEPS_A_BYTE * len(raw))[0]

    def length(self, needle: int) -> int:
        """Return the number of characters of the needle."""
        return len(self._needles[needle])

    @cached_property
    def _heads(self) -> Any:
        return self._head_patterns[0]

    @cached_property
    def _head_bytes(self) -> int:
        """Return the largest number of bytes of a head."""
        return self._head_patterns[1]

    @cached_property
    def _head_patterns(self) -> tuple[Any, int]:
        for count in _HEAD_CHARS:
            heads = [needle[:count] for needle in self._needles]
            pattern = _compiled(heads)
            if pattern is not None:
                return pattern, _most_bytes(heads)
        return None, self._most_bytes

    @cached_property
    def _edges(self) -> Any:
        edges = (each for n in self._needles for each in (n[:LEAST_CHARS], n[-LEAST_CHARS:]))
        return _compiled(edges)

    @cached_property
    def _inner(self) -> dict[int, list[Position]]:
        """Return the inner positions with LEAST_CHARS or more left, by first byte."""
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
        """Whether the position exists: it was stored, and the needles may have changed since."""
        number, char, writing, offset = position
        if number >= len(self._needles) or char >= len(self._needles[number]):
            return False
        writings = self._needles[number][char].writings
        return writing < len(writings) and offset < len(writings[writing])

    def _follow(self, raw: bytes, at: int, active: Active, steps: int) -> tuple[int, Active, int]:
        """Return the end of the longest match (0 if none), the open positions, and the steps taken.

        After more than `steps` the end of the text counts as the end of the match.
        """
        end = taken = 0
        while active and at < len(raw):
            taken += len(active)
            if taken > steps:
                return len(raw), {}, taken
            active, ended = self._step(active, raw[at])
            at += 1
            end = at if ended else end
        return end, active, taken

    def _step(self, active: Active, byte: int) -> tuple[Active, bool]:
        """Return the positions after one more byte, and whether a needle ended."""
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


def _most_bytes(needles: Iterable[Needle]) -> int:
    """Return the number of bytes of the longest writing of any needle."""
    sizes = (sum(len(each.writings[0]) for each in needle) for needle in needles)
    return max(sizes, default=0)


def _compiled(needles: Iterable[Needle]) -> Any:
    """Return one pattern for all needles; None if it would be too large."""
    parts = {b"".join(each.pattern for each in needle) for needle in needles}
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY_BYTES
    # Without needles: a pattern that matches nothing.
    pattern = b"|".join(sorted(parts)) or rb"[^\x00-\xff]"
    if len(pattern) > _PATTERN_BYTES:
        return None
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
