"""Cut values into the parts to search for, so that no part of a secret value stays visible.

A part has a bounded size, whatever the size of its value, and so has the text in which it may be
written. That is all that must be remembered where a line is cut.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

# Anything shorter would be found in the middle of other words.
LEAST_CHARS = 6
# Parts of a longer line overlap by half: what is cut off of one is within the next.
_PART_CHARS = 24
MOST_PART_BYTES = 4 * _PART_CHARS
# How `openssl`, and `base64` and `email`, fold what they write.
_FOLDED_AT = (64, 76)
# Base64 may be folded within any part: as many characters less one are left on each side.
_SHORT_DIGITS, _PART_DIGITS, _LONG_PART_DIGITS = 340, LEAST_CHARS, 12
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_LINE_END = re.compile(r"\r\n|\r|\n")
# Line ends as escaped in a JSON string; decoding it prints real ones.
_WRITTEN_LINE_END = re.compile(r"\\r\\n|\\n")


def is_masked(value: str) -> bool:
    """Whether the value is long enough to be looked for."""
    return bool(_lines(value))


def parts_of(value: str) -> set[bytes]:
    """Return the parts of the value's lines, those of LEAST_CHARS or more."""
    return {_bytes_of(part) for line in _lines(value) for part in _overlapping(line)}


def base64_parts_of(value: str) -> set[bytes]:
    """Return the parts of the whole value in base64, wherever it begins in what was encoded."""
    if not is_masked(value):
        return set()
    raw = _bytes_of(value.strip())
    parts = {
        part
        for before in range(3)
        for part in _in_base64(stable_base64(raw, before), is_whole=before == 0)
    }
    return parts | {part.translate(_URL_SAFE) for part in parts}


def stable_base64(raw: bytes, before: int) -> bytes:
    """Return the base64 characters that do not depend on the text around `raw`.

    `before`: the bytes before it, modulo 3.
    """
    text = base64.b64encode(b"\0" * before + raw).rstrip(b"=")
    return text[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


def _lines(value: str) -> set[str]:
    lines = _LINE_END.split(value)
    parts = [part for line in lines for part in _WRITTEN_LINE_END.split(line)]
    return {line for line in map(str.strip, (*lines, *parts)) if len(line) >= LEAST_CHARS}


def _overlapping(line: str) -> Iterator[str]:
    last = max(0, len(line) - _PART_CHARS)
    for at in (*range(0, last, _PART_CHARS // 2), last):
        yield line[at : at + _PART_CHARS]


def _in_base64(digits: bytes, *, is_whole: bool) -> Iterator[bytes]:
    """Yield parts that cover the digits; if `is_whole` or short, also their lines as folded."""
    is_short = len(digits) <= _SHORT_DIGITS
    size = _PART_DIGITS if is_short else _LONG_PART_DIGITS
    begins = {*range(0, len(digits) - size + 1, size), len(digits) - size}
    for width in _FOLDED_AT if is_short or is_whole else ():
        ends = range(width, len(digits) - size + 1, width)
        begins |= {*ends, *(end - size for end in ends)}
    for at in begins:
        yield digits[at : at + size]


def _bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
