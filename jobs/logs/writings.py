"""List the ways programs write a character: as it is, or escaped for a shell, JSON or a URL.

No program escapes ASCII letters and digits. For every other character this lists the writings of
all known shells, languages and encoders. A match may mix them, so the writer need not be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html.entities import codepoint2name
from itertools import chain

_ASCII_END, _LATIN_END, _BMP_END = 0x80, 0x100, 0x10000
# Escapes of C, Python, JSON and of bash's $'...' which name a control character.
_NAMED = {
    "\a": ("a",),
    "\b": ("b",),
    "\t": ("t",),
    "\v": ("v",),
    "\f": ("f",),
    "\x1b": ("e", "E"),
}
# Bash within single quotes, then Python's shlex, then dash, which may put several together; YAML.
_QUOTES = ("'\\''", "'\"'\"'", "'\"'", "''", "&apos;")


class Character:
    """One character of a needle, with all its writings as bytes; the longest first."""

    __slots__ = ("by_first", "pattern", "writings")

    def __init__(self, writings: frozenset[bytes]) -> None:
        self.writings = sorted(writings, key=lambda each: (-len(each), each))
        # First byte -> indexes of the writings that begin with it.
        self.by_first: dict[int, list[int]] = {}
        for number, writing in enumerate(self.writings):
            self.by_first.setdefault(writing[0], []).append(number)
        # A regular expression over bytes, for RE2 in Latin-1.
        self.pattern = b"(?:%b)" % b"|".join(map(_literal, self.writings))


@lru_cache(maxsize=4096)
def character(text: str) -> Character:
    """Return the character with all its known writings."""
    if text.isascii() and text.isalnum():
        return Character(frozenset({text.encode()}))
    written = {text, *_by_code(text), *_by_byte(text), *_by_name(text)}
    # Nested JSON and nested URLs escape the escapes once more.
    written |= {each.replace("\\", "\\\\").replace('"', '\\"') for each in written}
    written |= {each.replace("%", "%25") for each in written if each.startswith("%") and each[1:]}
    return one_of(*sorted(written))


@lru_cache(maxsize=4096)
def one_of(*written: str) -> Character:
    """Return a character that has any of these writings."""
    return Character(frozenset(each.encode(errors="surrogatepass") for each in written))


def _by_code(text: str) -> Iterator[str]:
    """Return the escapes by code point of languages, HTML and JavaScript's `escape`."""
    code = ord(text)
    yield f"&#{code};"
    for number in _in_both_cases(f"{code:x}"):
        yield f"&#x{number};"
        yield f"&#X{number};"
        yield f"\\u{{{number}}}"
        yield f"\\U{number:0>8}"
        if code < _BMP_END:
            yield f"\\u{number:0>4}"
            yield f"%u{number:0>4}"
        if code < _LATIN_END:
            yield f"\\x{number:0>2}"
            yield f"%{number:0>2}"
    if code >= _BMP_END:
        halves = text.encode("utf-16-be")
        for pair in _in_both_cases(halves.hex()):
            yield f"\\u{pair[:4]}\\u{pair[4:]}"
            yield f"%u{pair[:4]}%u{pair[4:]}"


def _by_byte(text: str) -> Iterator[str]:
    """Return the escapes by UTF-8 byte of URLs, Python's `bytes` and shells."""
    raw = text.encode(errors="surrogatepass")
    for form in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\x{:02X}", "\\{:03o}", "\\{:o}"):
        yield "".join(form.format(byte) for byte in raw)


def _by_name(text: str) -> Iterator[str]:
    """Return the named escapes and, for ASCII, the character after a backslash."""
    if ord(text) in codepoint2name:
        yield f"&{codepoint2name[ord(text)]};"
    if text in _NAMED:
        yield from (f"\\{letter}" for letter in _NAMED[text])
    elif ord(text) < _ASCII_END and text.isprintable():
        yield f"\\{text}"
    if text == "'":
        yield from _QUOTES
    if text == '"':
        yield '""'
    if text == " ":
        # As HTML forms encode it, and URLs that contain form data.
        yield from ("+", "%2B", "%2b")


def _in_both_cases(number: str) -> set[str]:
    return {number, number.upper()}


def _literal(writing: bytes) -> bytes:
    return bytes(chain.from_iterable(_escaped(byte) for byte in writing))


def _escaped(byte: int) -> bytes:
    is_plain = byte < _ASCII_END and chr(byte).isalnum()
    return bytes([byte]) if is_plain else b"\\x%02x" % byte
