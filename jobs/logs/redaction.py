"""Mask tokens of the portal and values of secrets in text before it is stored.

Tokens are known by their shape, so the masks of an attempt without secrets are those of any other.
Values are searched for, in parts (`jobs.logs.needles`), in each reading of the text
(`jobs.logs.encodings`). The time is linear in the text's length, whatever the values.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from threading import Lock

import re2
from ahocorasick_rs import BytesAhoCorasick, Implementation

from jobs.logs.encodings import Span, views_at_end, views_of
from jobs.logs.needles import (
    LEAST_CHARS,
    MOST_PART_BYTES,
    base64_parts_of,
    parts_of,
    stable_base64,
)

MASK = "***"
# API tokens, those of attempts and of their programs, by their public prefixes and the shape of
# what follows.
_PREFIXES = ("mpa_", "mpj_", "mpt_")
_TOKEN = re.compile(r"\b(mp[ajt]_)[A-Za-z0-9_-]{40,64}")
_TOKEN_IN_BYTES = re.compile(_TOKEN.pattern.encode())
_HEX_TOKEN = rb"6[dD]70(?:61|6[aA]|74)5[fF](?:[0-9a-fA-F]{2}){40,64}"
# In base64, also of a text around it and folded within the same text.
_BASE64_PREFIXES = b"|".join(
    stable_base64(prefix.encode(), before) for prefix in _PREFIXES for before in range(3)
)
_BASE64_TOKEN = rb"(?:%b)(?:[A-Za-z0-9+/_-](?:\r?\n)?){50,86}" % _BASE64_PREFIXES
_WRITTEN_TOKEN = re.compile(rb"%b|%b" % (_HEX_TOKEN, _BASE64_TOKEN))
_MAY_BE_TOKEN = re2.compile(rb"mp[ajt]_|6[dD]70(?:61|6[aA]|74)5[fF]|%b" % _BASE64_PREFIXES)
_OPEN_TOKEN = re.compile(rb"\bm(?:p(?:[ajt](?:_[A-Za-z0-9_-]{0,64})?)?)?\Z")
# At the end of a piece, mask as many characters of a value that may continue in the next piece. A
# shorter match may be the start of any word.
_LEAST_START = 3
# The end of a piece in which the start of a part is looked for, in any known writing of it.
_END_BYTES = 2048
# So many lines at each end of an excerpt are decoded to find edges of values. The lines between are
# searched as they are; a value that continues in the next line is found in all of them.
_READ_LINES = 100
# Texts are searched in stretches, so that a text of one character does not fill memory.
_STRETCH_BYTES = 64 * 1024
# URLs of forms write a space as a plus sign.
_FOLDED = bytes.maketrans(b"+", b" ")
# The most memory that an automaton takes, and each byte that it searches for.
_AUTOMATON_BYTES, _BYTES_A_BYTE = 24 * 1024, 36


class Redaction:
    """The masks of one attempt: all tokens of the portal, and the values that it received."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        values = list(values)
        parts = {part.translate(_FOLDED) for value in values for part in parts_of(value)}
        written = {part.translate(_FOLDED) for value in values for part in base64_parts_of(value)}
        self._edges = _Edges(sorted(parts))
        self._automaton = None
        self.size = 0
        if parts:
            needles = sorted(parts | written)
            self._automaton = BytesAhoCorasick(needles, implementation=Implementation.ContiguousNFA)
            self.size = _AUTOMATON_BYTES + _BYTES_A_BYTE * sum(map(len, needles))

    def text(self, text: str) -> str:
        """Return the text with each value and each token masked."""
        return self.texts([text])[0]

    def texts(self, texts: Sequence[str]) -> list[str]:
        """Mask whole lines: together, since that takes a fraction of the time."""
        raws = [_bytes_of(text) for text in texts]
        shown = list(texts)
        for number, spans in _by_text(raws, self._found(b"\n".join(raws))):
            shown[number] = _masked(raws[number], spans)
        return shown

    def excerpt(self, text: str) -> str:
        """Mask an excerpt of a longer text: each of its lines may begin or end within a value."""
        raw = _bytes_of(text)
        spans = self._found(raw)
        if self._automaton is not None:
            spans += self._across_lines(raw)
            spans += self._of_edges(raw.split(b"\n"))
        return _masked(raw, spans) if spans else text

    def _of_edges(self, lines: list[bytes]) -> Iterator[Span]:
        """Yield the spans of parts that begin before a line or end after it."""
        begin = 0
        for number, line in enumerate(lines):
            # A text may consist of line ends; no edge is shorter than this.
            if len(line) >= LEAST_CHARS:
                is_inner = _READ_LINES <= number < len(lines) - _READ_LINES
                edges = self._edges.as_written(line) if is_inner else self._edges.of(line)
                yield from ((begin + a, begin + b) for a, b in edges)
            begin += len(line) + 1

    def piece(self, text: str, before: str, *, more: bool) -> tuple[str, str]:
        """Mask a piece of a split line; return it, and the end of it that may begin a value.

        `before` is that end of the previous piece; `more`: another piece follows.
        """
        begin, raw = len(_bytes_of(before)), _bytes_of(before + text)
        spans = self._found(raw)
        opened = self._open_ends(raw) if more else []
        for start, chars in opened:
            if chars >= _LEAST_START or start < begin:
                spans.append((start, len(raw)))
        after = raw[min((start for start, _ in opened), default=len(raw)) :]
        shown = [(max(0, start - begin), end - begin) for start, end in spans]
        return _masked(raw[begin:], shown), after.decode(errors="surrogatepass")

    def _open_ends(self, raw: bytes) -> list[tuple[int, int]]:
        """Return where values and tokens begin that may continue after `raw`, and their length."""
        token = _OPEN_TOKEN.search(raw, max(0, len(raw) - _END_BYTES))
        found = [(token.start(), len(token[0]))] if token else []
        return found + (self._edges.open_ends(raw) if self._automaton is not None else [])

    def _found(self, raw: bytes) -> list[Span]:
        """Return the spans of all values and tokens."""
        spans = _tokens(raw)
        if self._automaton is not None:
            for view in views_of(raw):
                spans += view.origins(list(self._matches(view.text)))
        return spans

    def _matches(self, text: bytes) -> Iterator[Span]:
        """Yield the spans of parts in the text, those that touch as one."""
        assert self._automaton is not None  # noqa: S101 - the callers have looked
        folded = text.translate(_FOLDED)
        begin = end = -1
        for at in range(0, len(folded), _STRETCH_BYTES):
            stretch = folded[at : at + _STRETCH_BYTES + MOST_PART_BYTES - 1]
            matches = self._automaton.find_matches_as_indexes(stretch, overlapping=True)
            for first, last in sorted(
                (a + at, b + at) for _, a, b in matches if a < _STRETCH_BYTES
            ):
                if first > end:
                    if end > begin:
                        yield begin, end
                    begin, end = first, last
                end = max(end, last)
        if end > begin:
            yield begin, end

    def _across_lines(self, raw: bytes) -> list[Span]:
        """Return the spans of values that are split by line ends."""
        flat = raw.replace(b"\n", b"")
        found = self._found(flat) if len(flat) < len(raw) else []
        if not found:
            return []
        places = [place for place, byte in enumerate(raw) if byte != ord("\n")]
        return [(places[begin], places[end - 1] + 1) for begin, end in found]


class _Edges:
    """The parts by their first and last bytes, for texts that begin or end within one."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts
        self._most_bytes = max(map(len, parts), default=1) - 1

    @cached_property
    def _reversed(self) -> list[bytes]:
        return sorted(part[::-1] for part in self._parts)

    @cached_property
    def _joined(self) -> bytes:
        return b"\n".join(self._parts)

    def as_written(self, line: bytes) -> Iterator[Span]:
        """Yield the spans as `of` does, without reading what an encoder wrote: 30 times faster."""
        text = line.translate(_FOLDED)
        yield 0, self._rest(text)
        yield len(text) - self._start(text, LEAST_CHARS), len(text)

    def of(self, line: bytes) -> Iterator[Span]:
        """Yield the span of the rest of a part that the line begins with, and of one it ends in."""
        for view in views_of(line[:_END_BYTES]):
            text = view.text.translate(_FOLDED)
            rest = self._rest(text)
            if rest:
                yield from view.origins([(0, rest)])
        for start, chars in self.open_ends(line, least=LEAST_CHARS):
            if chars:
                yield start, len(line)

    def open_ends(self, raw: bytes, *, least: int = 1) -> list[tuple[int, int]]:
        """Return where parts begin of which `least` bytes or more end the text, and how many."""
        begin = _begin_of_end(raw)
        found = []
        for view in views_at_end(raw[begin:]):
            size = self._start(view.text.translate(_FOLDED), least)
            if size or view.is_cut:
                at = len(view.text) - size
                ((start, _),) = view.origins([(at, len(view.text))])
                found.append((begin + start, size))
        return found

    def _start(self, text: bytes, least: int) -> int:
        """Return the size of the longest start of a part that the text ends with, or 0."""
        if least >= LEAST_CHARS and text[-LEAST_CHARS:] not in self._joined:
            return 0
        sizes = range(min(len(text), self._most_bytes), least - 1, -1)
        return next((size for size in sizes if _begins_one(self._parts, text[-size:])), 0)

    def _rest(self, text: bytes) -> int:
        """Return the size of the longest end of a part that the text begins with, or 0."""
        if text[:LEAST_CHARS] not in self._joined:
            return 0
        sizes = range(min(len(text), self._most_bytes), LEAST_CHARS - 1, -1)
        return next((size for size in sizes if _begins_one(self._reversed, text[:size][::-1])), 0)


def redacted(text: str) -> str:
    """Return the text with every token of the portal masked, its prefix kept."""
    if not any(prefix in text for prefix in _PREFIXES):
        return text
    return _TOKEN.sub(r"\1***", text)


class RedactionCache:
    """A thread-safe cache of the most recently used redactions, by attempt."""

    # The values of any job fit (`hand_secrets.MOST_BYTES_OF_JOB`), beside those of many others.
    def __init__(self, most_bytes: int = 24 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
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
        """Cache the redaction, whatever its size; evict the least recently used others."""
        with self._lock:
            known = self._by_attempt.pop(attempt, None)
            self._bytes += redaction.size - (known.size if known else 0)
            self._by_attempt[attempt] = redaction
            while self._bytes > self._most_bytes and len(self._by_attempt) > 1:
                self._bytes -= self._by_attempt.popitem(last=False)[1].size


def _bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _tokens(raw: bytes) -> list[Span]:
    """Return the spans of token codes, without the prefixes, and of tokens that are encoded."""
    if _MAY_BE_TOKEN.search(raw) is None:
        return []
    codes = [(found.end(1), found.end()) for found in _TOKEN_IN_BYTES.finditer(raw)]
    return codes + [found.span() for found in _WRITTEN_TOKEN.finditer(raw)]


def _begins_one(parts: list[bytes], start: bytes) -> bool:
    """Whether one of the sorted parts begins with `start` and goes on."""
    at = bisect_right(parts, start)
    return at < len(parts) and parts[at].startswith(start)


def _begin_of_end(raw: bytes) -> int:
    """Return where the end of the text begins: in step with the backslashes or digits before it."""
    begin = max(0, len(raw) - _END_BYTES)
    run = len(raw[:begin].rstrip(b"\\0123456789abcdefABCDEF"))
    return run + (begin - run) // 8 * 8


def _by_text(raws: list[bytes], spans: list[Span]) -> Iterable[tuple[int, list[Span]]]:
    """Return the spans of each of the texts that has any, by its number."""
    found: dict[int, list[Span]] = {}
    begins = list(accumulate((len(raw) + 1 for raw in raws), initial=0)) if spans else []
    for begin, end in spans:
        number = bisect_right(begins, begin) - 1
        while number < len(raws) and begins[number] < end:
            at = begins[number]
            found.setdefault(number, []).append((max(0, begin - at), end - at))
            number += 1
    return found.items()


def _masked(raw: bytes, spans: Iterable[Span]) -> str:
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
