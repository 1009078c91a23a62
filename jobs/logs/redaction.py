"""Mask tokens of the portal and values of secrets in text before it is stored.

Masks the values that an attempt received, and its own tokens, in its lines, reports and messages,
in every form that `jobs.logs.needles` knows. Values that a program itself transforms (reverses,
cuts up, encrypts) are not found.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from threading import Lock

import re2

from jobs.logs.needles import LEAST_CHARS, Needle, any_token, is_masked, needles_of, parts_of
from jobs.logs.walking import Needles, Position, Span

MASK = "***"
# API tokens, those of attempts and of their programs, by their public prefixes and the shape of
# what follows.
_TOKEN = re.compile(r"\b(mp[ajt]_)[A-Za-z0-9_-]{40,64}")
_TOKEN_IN_BYTES = re.compile(_TOKEN.pattern.encode())
_MAY_BE_TOKEN = re2.compile(rb"mp[ajt]_[A-Za-z0-9_-]{40}")
_PREFIXES = ("mpa_", "mpj_", "mpt_")
# At the end of a piece, mask the start of a value that may continue in the next piece, if it is at
# least an eighth of the value. A shorter match may be the start of any word.
_LEAST_START, _START_PART = 3, 8
_MOST_OPEN = 50


class Redaction:
    """The masks of one attempt: all tokens of the portal, and the values that it received."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        values = list(values)
        whole = _in_order(needle for value in values for needle in needles_of(value))
        parts = _in_order(part for value in values if is_masked(value) for part in parts_of(value))
        self._needles = Needles([*whole, *parts])
        # In a split line, the code of a token may have any length so far.
        self._cut = Needles([any_token(), *whole])

    def text(self, text: str) -> str:
        """Return the text with each value and each token masked."""
        text = redacted(text)
        raw = _bytes_of(text)
        spans = list(self._needles.found(raw))
        return _masked(raw, spans) if spans else text

    def touched(self, texts: Sequence[str]) -> set[int]:
        """Return the indexes of the texts that may hold anything to mask."""
        raw = _bytes_of("\n".join(texts))
        if raw.count(b"\n") >= max(1, len(texts)):
            # Some values contain line ends.
            return set(range(len(texts)))
        found: set[int] = set()
        for next_match in (self._needles.next_head, _next_token):
            number = counted = 0
            at = next_match(raw, 0)
            while at >= 0:
                number += raw.count(b"\n", counted, at)
                found.add(number)
                counted = at
                end = raw.find(b"\n", at)
                at = next_match(raw, end) if end >= 0 else -1
        return found

    def excerpt(self, text: str) -> str:
        """Mask an excerpt of a longer text: each of its lines may begin or end within a value."""
        raw = _bytes_of(text)
        flat = raw.replace(b"\n", b"")
        if not any(map(self._needles.may_hold_part, (raw, flat) if flat != raw else (raw,))):
            return redacted(text)
        spans = [*self._needles.found(raw), *self._across_lines(raw, flat), *_tokens(raw)]
        begin = 0
        for line in raw.split(b"\n"):
            end = begin + len(line)
            spans.append((begin, begin + self._needles.end_of_rest(line)))
            for position, start in self._needles.open_ends(line).items():
                if position.char >= LEAST_CHARS:
                    spans.append((begin + start, end))
            begin = end + 1
        return _masked(raw, spans)

    def piece(
        self, text: str, before: Iterable[Position], *, more: bool
    ) -> tuple[str, list[Position]]:
        """Mask a piece of a split line; return it and how far into values it ends.

        `before` is the result for the previous piece; `more`: another piece follows.
        """
        raw = _bytes_of(text)
        end, after = self._cut.go_on(raw, before)
        if not more and not end:
            return self.text(text), []
        spans = [*_tokens(raw), *self._needles.found(raw), (0, end)]
        if not more:
            return _masked(raw, spans), []
        if after:
            spans.append((0, len(raw)))
        fresh = self._cut.open_ends(raw)
        for position, begin in fresh.items():
            if position.char >= self._least_start(position.needle):
                spans.append((begin, len(raw)))
        return _masked(raw, spans), [*dict.fromkeys([*after, *fresh])][:_MOST_OPEN]

    def _least_start(self, needle: int) -> int:
        part = self._cut.length(needle) // _START_PART
        return min(LEAST_CHARS, max(_LEAST_START, part))

    def _across_lines(self, raw: bytes, flat: bytes) -> list[Span]:
        """Return the spans of values that are split by line ends."""
        if len(flat) == len(raw):
            return []
        positions = [place for place, byte in enumerate(raw) if byte != ord("\n")]
        return [
            (positions[begin], positions[end - 1] + 1) for begin, end in self._needles.found(flat)
        ]


def redacted(text: str) -> str:
    """Return the text with every token of the portal masked, its prefix kept."""
    if not any(prefix in text for prefix in _PREFIXES):
        return text
    return _TOKEN.sub(r"\1***", text)


class RedactionCache:
    """A thread-safe cache of the most recently used redactions, by attempt."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._by_attempt: OrderedDict[Hashable, Redaction] = OrderedDict()
        self._lock = Lock()

    def get(self, attempt: Hashable) -> Redaction | None:
        """Return the cached redaction of the attempt, or None."""
        with self._lock:
            if attempt not in self._by_attempt:
                return None
            self._by_attempt.move_to_end(attempt)
            return self._by_attempt[attempt]

    def put(self, attempt: Hashable, redaction: Redaction) -> None:
        """Cache the redaction; evict the least recently used one."""
        with self._lock:
            self._by_attempt[attempt] = redaction
            while len(self._by_attempt) > self._most:
                self._by_attempt.popitem(last=False)


def _in_order(needles: Iterable[Needle]) -> list[Needle]:
    """Return each needle once, always in the same order: positions within them are stored."""
    found = {(len(each), b"".join(one.pattern for one in each)): each for each in needles}
    return [found[key] for key in sorted(found)]


def _bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _next_token(raw: bytes, begin: int) -> int:
    match = _MAY_BE_TOKEN.search(raw, begin)
    return int(match.start()) if match else -1


def _tokens(raw: bytes) -> list[Span]:
    """Return the spans of token codes, without the prefixes."""
    return [(found.end(1), found.end()) for found in _TOKEN_IN_BYTES.finditer(raw)]


def _masked(raw: bytes, spans: list[Span]) -> str:
    """Return the text with one mask for each group of overlapping spans."""
    parts: list[bytes] = []
    done = 0
    is_begun = False
    for begin, end in sorted(span for span in spans if span[1] > span[0]):
        if end <= done:
            continue
        if begin > done or not is_begun:
            parts += [raw[done:begin], MASK.encode()]
            is_begun = True
        done = end
    return b"".join([*parts, raw[done:]]).decode(errors="surrogatepass")
