"""Search for lines of a piece of log that match a question, and for the matches in them.

It runs in a process of its own (`jobs.logs.match_process`) and knows neither Django nor a database.
Regular expressions are RE2's: the time they take grows with the text, never with its powers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

import re2

from jobs.escapes import SEQUENCE
from jobs.logs.bad_patterns import BadPatternError, bad_pattern
from jobs.logs.levels import PATTERNS
from jobs.logs.lines import CODE_OF_STREAM
from jobs.logs.long_lines import Border, LongLines, end_of_match_across

MOST_SPANS = 100
# What the compiled pattern and its states may take.
_MEMORY_BYTES = 16 * 1024 * 1024
# Of one of several patterns that are looked for together: they all fit into the above.
_PART_BYTES = 384 * 1024
# Text of hits in one answer; one more line may go beyond it.
_MOST_CHARS = 1024 * 1024
_ESCAPES = re.compile(SEQUENCE.encode())
# Means something else within a whole piece than within one line.
_OF_ONE_LINE = re.compile(r"\^|\\[AzZ]|\(\?[a-zA-Z-]*m")
_BEFORE_TEXT = "[0-9]+ [A-Za-z][0-9]+ "

Find = Callable[[bytes, int], int]


@dataclass(frozen=True, slots=True)
class Question:
    """The criteria of a search. Without `text` every line that meets the others is a hit.

    `level`: one of `jobs.logs.levels`, or a more severe one.
    `parts`: patterns of which `text` matches any; a hit then names those that it matches.
    """

    text: str = ""
    is_regex: bool = False
    with_case: bool = False
    rank: int | None = None
    stream: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    level: str | None = None
    parts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Convert the question to JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Hit:
    """A line as it is stored. `spans` count characters of its text without escape sequences.

    `parts`: which of the question's parts it fits, by their place.
    """

    number: int
    stored: str
    spans: list[tuple[int, int]]
    parts: list[int]


class Matcher:
    """A matcher of one question in any number of pieces. BadPatternError: RE2 rejects it."""

    def __init__(self, question: Question) -> None:
        self._level = None
        if question.level is not None:
            level = Question(PATTERNS[question.level], is_regex=True)
            if question.text:
                self._level = _compiled(level.text, level)
            else:
                # Its words are what is looked for, and marked.
                question = replace(question, text=level.text, is_regex=True, with_case=False)
        self._question = question
        self._pattern = _compiled(question.text, question)
        self._find = _finder(question) if question.text else None
        self._parts = [compiled_part(part) for part in question.parts]
        self._code = CODE_OF_STREAM.get(question.stream or "")

    def hits(
        self,
        raw: bytes,
        first: int,
        *,
        begin: int = 0,
        limit: int = 1000,
        long_lines: LongLines | None = None,
    ) -> tuple[list[Hit], bool]:
        """Return the first hits of a piece that begins with number `first`, from line `begin` on;
        and whether the lines behind the last one were left out.

        `long_lines` knows the pieces before this one, and then this one as well.
        """
        text = _ESCAPES.sub(b"", raw) if b"\x1b" in raw else raw
        drawn = None if text is raw else raw.split(b"\n")
        # Without a text every line is a hit.
        seen = (long_lines or LongLines()).borders(text) if self._question.text else []
        borders = {border.offset: border for border in seen}
        found: list[Hit] = []
        chars = 0
        for offset, line in self._to_look_at(text, borders):
            number = first + offset
            if number < begin:
                continue
            border = borders.get(offset)
            spans = self._spans(line, border)
            if spans is None:
                continue
            stored = (line if drawn is None else drawn[offset]).decode(errors="replace")
            found.append(Hit(number, stored, spans, self._parts_in(line, border)))
            chars += len(stored)
            if len(found) >= limit or chars > _MOST_CHARS:
                return found, True
        return found, False

    def _to_look_at(self, text: bytes, borders: dict[int, Border]) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) of lines that may match, alone or with the piece before them."""
        others = [(offset, each.line) for offset, each in borders.items() if self._may_cross(each)]
        if not others:
            yield from self._candidates(text)
            return
        last = -1
        for offset, line in merge(self._candidates(text), others):
            if offset != last:
                yield offset, line
            last = offset

    def _may_cross(self, border: Border) -> bool:
        """Whether something may match across it: far cheaper than to find out."""
        if self._find is None:
            return True
        return 0 <= self._find(border.before + _text_of(border.line), 0) < len(border.before)

    def _candidates(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) of lines that may match; every one that does is among them."""
        if self._find is None:
            yield from enumerate(text.split(b"\n"))
            return
        offset = counted = 0
        at = self._find(text, 0)
        while at >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            offset += text.count(b"\n", counted, start)
            counted = start
            yield offset, text[start:end]
            # From the next line on, not from the end of the match, which may be lines below.
            at = self._find(text, end + 1) if end < len(text) else -1

    def _spans(self, line: bytes, border: Border | None) -> list[tuple[int, int]] | None:
        """Return the matches in the line, across its border too; None if it does not match."""
        rank, stamp, text = line.split(b" ", 2)
        if not self._is_chosen(int(rank), stamp.decode()):
            return None
        if not self._question.text:
            return []
        drawn = text.decode(errors="replace")
        if self._level is not None and not _is_in(self._level, drawn, border):
            return None
        end = 0 if border is None else _end_across(self._pattern, border)
        matched = end > 0
        spans = [(0, end)] if matched else []
        matches = self._pattern.finditer(drawn)
        # One that matches nothing does so at every character.
        for match in islice(matches, 10 * MOST_SPANS):
            matched = True
            if match.end() > match.start() >= end:
                spans.append(match.span())
            if len(spans) >= MOST_SPANS:
                break
        return spans if matched else None

    def _parts_in(self, line: bytes, border: Border | None) -> list[int]:
        """Return the indexes of the question's parts that the line matches."""
        if not self._parts:
            return []
        text = _text_of(line).decode(errors="replace")
        return [place for place, part in enumerate(self._parts) if _is_in(part, text, border)]

    def _is_chosen(self, rank: int, stamp: str) -> bool:
        question = self._question
        if question.rank is not None and rank != question.rank:
            return False
        if self._code is not None and stamp[0].lower() != self._code:
            return False
        at_ms = int(stamp[1:])
        if question.since_ms is not None and at_ms < question.since_ms:
            return False
        return question.until_ms is None or at_ms < question.until_ms


def _text_of(line: bytes) -> bytes:
    return line.split(b" ", 2)[2]


def _end_across(pattern: Any, border: Border) -> int:
    """Return the length of the line's part in a match across the border; 0: there is none."""
    text = _text_of(border.line).decode(errors="replace")
    return end_of_match_across(pattern, border.before.decode(errors="replace"), text) or 0


def _is_in(pattern: Any, text: str, border: Border | None) -> bool:
    """Whether a line's text has it, or has the end of it."""
    found = pattern.search(text) is not None
    return found or (border is not None and _end_across(pattern, border) > 0)


def compiled_part(pattern: str) -> Any:
    """Compile one of a question's parts. BadPatternError: it is invalid for RE2, or too large."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PART_BYTES
    try:
        re2.compile(pattern, options)
        # As it is used among the others: one that would swallow what follows it is no pattern.
        return re2.compile(f"(?:{pattern})", options)
    except re2.error as error:
        raise bad_pattern(pattern, error) from None


def _compiled(pattern: str | bytes, question: Question) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.literal = not question.is_regex
    options.case_sensitive = question.with_case
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise bad_pattern(question.text, error) from None


def _finder(question: Question) -> Find | None:
    """Return a function that finds possible matches in a whole piece; None: check every line."""
    text = question.text
    if not question.is_regex and question.with_case:
        wanted = text.encode(errors="replace")
        return lambda piece, start: piece.find(wanted, start)
    if question.is_regex:
        begin = ""
        if re.match(r"\^(?![*+?{])", text) and "|" not in text:
            # A line's text begins after its rank and time.
            text, begin = text[1:], "^" + _BEFORE_TEXT
        if _OF_ONE_LINE.search(text):
            return None
        text = f"(?m:{begin}{text})"
    try:
        pattern = _compiled(text.encode(), question)
    except (BadPatternError, UnicodeEncodeError):
        return None

    def find(piece: bytes, start: int) -> int:
        match = pattern.search(piece, start)
        return match.start() if match else -1

    return find
