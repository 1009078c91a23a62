"""Derive the texts to search for (needles), so that no part of a secret value stays visible."""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Iterator

from jobs.logs.writings import Character, character, one_of

# Anything shorter would be found in the middle of other words.
LEAST_CHARS = 6
# Of a value with more lines only the first ones: no secret is that long.
_MOST_LINES = 2000
# How `openssl`, and `base64` and `email`, fold what they write.
_FOLDED_AT = (64, 76)
# Base64 may be folded at any character of a value. Search for every part of this many characters
# of a short value; for larger, consecutive parts of a longer one.
_PART_CHARS, _SHORT_CHARS, _LONG_PART_CHARS = LEAST_CHARS, 340, 12
_LINE_END = re.compile(r"\r\n|\r|\n")
# Line ends as escaped in a JSON string; decoding it prints real ones.
_WRITTEN_LINE_END = re.compile(r"\\r\\n|\\n")
# The characters after the prefix of a person's token.
_CODE_CHARS = 43

Needle = tuple[Character, ...]


def needles_of(value: str) -> set[Needle]:
    """Return the needles of LEAST_CHARS or more: each line, and the encoded whole value."""
    found = {tuple(map(character, line)) for line in _lines(value)}
    if found:
        found |= set(_encoded(value.strip()))
    return {needle for needle in found if _is_long(needle)}


def parts_of(value: str) -> set[Needle]:
    """Return parts of the value in base64, which stand alone where a text around it was folded."""
    return {part for whole in _in_base64(value.strip()) for part in _parts(whole)}


def is_masked(value: str) -> bool:
    """Whether the value is long enough to be looked for."""
    return bool(_lines(value))


def any_token() -> Needle:
    """Return a needle that matches every token of the portal, from its prefix on."""
    code = one_of(*string.ascii_letters, *string.digits, "-", "_")
    return (one_of("m"), one_of("p"), one_of("a", "j", "t"), one_of("_"), *[code] * _CODE_CHARS)


def _lines(value: str) -> set[str]:
    lines = _LINE_END.split(value)[:_MOST_LINES]
    parts = [part for line in lines for part in _WRITTEN_LINE_END.split(line)[:_MOST_LINES]]
    return {line for line in map(str.strip, (*lines, *parts)) if _is_long(line)}


def _is_long(text: str | Needle) -> bool:
    return len(text) >= LEAST_CHARS


def _encoded(value: str) -> Iterator[Needle]:
    """Yield a whole value in hexadecimal and base64, wherever it begins in what was encoded."""
    raw = value.encode(errors="surrogatepass")
    yield tuple(one_of(digit, digit.upper()) for digit in raw.hex())
    wholes = _in_base64(value)
    yield from wholes
    for width in _FOLDED_AT:
        yield from (wholes[0][at : at + width] for at in range(0, len(wholes[0]), width))


def _in_base64(value: str) -> list[Needle]:
    """Return the base64 characters that do not depend on the text around the value."""
    raw = value.encode(errors="surrogatepass")
    found = []
    for before in range(3):
        text = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        begin = (before * 8 + 5) // 6
        whole = (before + len(raw)) * 8 // 6
        found.append(tuple(map(_base64_digit, text[begin:whole])))
    return found


def _parts(whole: Needle) -> Iterator[Needle]:
    """Yield the needles for a base64 value that may be split anywhere."""
    is_short = len(whole) <= _SHORT_CHARS
    size, step = (_PART_CHARS, 1) if is_short else (_LONG_PART_CHARS, _LONG_PART_CHARS)
    yield from (whole[at : at + size] for at in range(0, len(whole) - size + 1, step))


def _base64_digit(digit: str) -> Character:
    return _LAST_DIGITS.get(digit) or character(digit)


# These differ in URL-safe base64, and are escaped in URLs and JSON.
_LAST_DIGITS = {
    "+": one_of("+", "-", "%2B", "%2b", "\\u002b", "\\u002B", "&#43;", "&#x2B;"),
    "/": one_of("/", "_", "%2F", "%2f", "\\/", "\\u002f", "\\u002F", "&#47;", "&#x2F;"),
}
