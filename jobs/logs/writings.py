"""How programs write one character of a value: as it is, and escaped for a shell, JSON or a URL.

No program escapes ASCII letters and digits. Everything else has each writing known of any shell,
language or encoder here, in any mixture: so nobody needs to know which of them wrote a text.
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
        # First byte -> which writings begin with it.
        self.by_first: dict[int, list[int]] = {}
        for number, writing in enumerate(self.writings):
            self.by_first.setdefault(writing[0], []).append(number)
        # A regular expression over bytes, for RE2 in Latin-1.
        self.pattern = b"(?:%b)" % b"|".join(map(_literal, self.writings))


@lru_cache(maxsize=4096)
def character(text: str) -> Character:
    """Return the character with every writing that is known of it."""
    if text.isascii() and text.isalnum():
        return Character(frozenset({text.encode()}))
    written = {text, *_by_code(text), *_by_byte(text), *_by_name(text)}
    # In a JSON text within a JSON text, and in a URL within a URL, escapes are escaped once more.
    written |= {each.replace("\\", "\\\\").replace('"', '\\"') for each in written}
    written |= {each.replace("%", "%25") for each in written if each.startswith("%") and each[1:]}
    return one_of(*sorted(written))


@lru_cache(maxsize=4096)
def one_of(*written: str) -> Character:
    """Return a character that is written in any of these ways."""
    return Character(frozenset(each.encode(errors="surrogatepass") for each in written))


def _by_code(text: str) -> Iterator[str]:
    """Return its number, as languages, HTML and JavaScript's `escape` write it."""
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
    """Return its bytes in UTF-8, as URLs, `bytes` of Python and shells write them."""
    raw = text.encode(errors="surrogatepass")
    for form in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\x{:02X}", "\\{:03o}", "\\{:o}"):
        yield "".join(form.format(byte) for byte in raw)


def _by_name(text: str) -> Iterator[str]:
    """Return its names and, of what is ASCII, a backslash before it."""
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
        # As forms write it, and a URL in which a form's content stands.
        yield from ("+", "%2B", "%2b")


def _in_both_cases(number: str) -> set[str]:
    return {number, number.upper()}


def _literal(writing: bytes) -> bytes:
    return bytes(chain.from_iterable(_escaped(byte) for byte in writing))


def _escaped(byte: int) -> bytes:
    is_plain = byte < _ASCII_END and chr(byte).isalnum()
    return bytes([byte]) if is_plain else b"\\x%02x" % byte
