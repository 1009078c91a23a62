"""Read a text as shells, languages and encoders have written it, and find the way back.

Each decoder undoes one way of writing, whichever characters the writer chose to escape. A `View` is
the text after none, one or two decoders; places in it lead back to places in the text. All patterns
match a bounded number of bytes or run once over the text, so the time is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html.entities import html5
from typing import Any, NamedTuple

import re2

Span = tuple[int, int]

_HEX = rb"[0-9a-fA-F]"
_HIGH, _LOW = rb"u[dD][89abAB]HH", rb"u[dD][c-fC-F]HH"
_NAMED = dict(zip(b"abtnvfreE", b"\a\b\t\n\v\f\r\x1b\x1b", strict=True))
_LAST_CHAR = 0x10FFFF


class Decoder(NamedTuple):
    """A way of writing. `sign`: found quickly where it is used; `cut`: an escape cut off."""

    pattern: re.Pattern[bytes]
    decode: Callable[[re.Match[bytes]], bytes]
    cut: re.Pattern[bytes]
    sign: Any  # a pattern of RE2


class View:
    """A text as decoders read it. `is_cut`: an escape was left off at its end."""

    def __init__(self, text: bytes, source: View | None = None, by: Decoder | None = None) -> None:
        self.text = text
        self.is_cut = False
        self._source = source
        self._by = by

    def decoded(self, decoder: Decoder) -> View:
        """Return the view after one more decoder."""
        view = View(decoder.pattern.sub(decoder.decode, self.text), self, decoder)
        view.is_cut = self.is_cut
        return view

    def without_cut(self, decoder: Decoder) -> View | None:
        """Return the view without an escape that the text's end may cut off; None: has none."""
        match = decoder.cut.search(self.text)
        if match is None:
            return None
        view = View(self.text[: match.start()], self._source, self._by)
        view.is_cut = True
        return view

    def origins(self, spans: list[Span]) -> list[Span]:
        """Return the spans of the first text that these sorted spans were written as."""
        if self._source is None or self._by is None or not spans:
            return spans
        places = self._places(sorted({place for span in spans for place in span}), self._by)
        return self._source.origins([(places[a][0], places[b][1]) for a, b in spans])

    def _places(self, offsets: list[int], by: Decoder) -> dict[int, Span]:
        """Return the begin and the end, in the source, of what is written at each offset."""
        assert self._source is not None  # noqa: S101 - the only caller has looked
        found: dict[int, Span] = {}
        at = shift = 0
        for match in by.pattern.finditer(self._source.text):
            begin = match.start() - shift
            end = begin + len(by.decode(match))
            while at < len(offsets) and offsets[at] < end:
                place = offsets[at]
                is_inside = place > begin
                found[place] = match.span() if is_inside else (place + shift, place + shift)
                at += 1
            if at == len(offsets):
                return found
            shift = match.end() - end
        return found | {place: (place + shift, place + shift) for place in offsets[at:]}


def views_of(raw: bytes) -> Iterator[View]:
    """Yield the text as it is, and as each decoder and each known pair of them reads it."""
    return _views(View(raw), _FIRST, set(), with_cuts=False)


def views_at_end(raw: bytes) -> Iterator[View]:
    """Yield the same views, and those without an escape that the text's end may cut off."""
    return _views(View(raw), _FIRST, set(), with_cuts=True)


def _views(
    view: View, names: Mapping[str, str], seen: set[Any], *, with_cuts: bool
) -> Iterator[View]:
    """Yield the view, and those after each decoder of `names`, then those of its value."""
    yield view
    if _ANY_SIGN.search(view.text) is None:
        return
    for name, following in names.items():
        decoder = _DECODERS[name]
        if decoder.sign.search(view.text) is None:
            continue
        for source in (view, view.without_cut(decoder) if with_cuts else None):
            decoded = source.decoded(decoder) if source else view
            key = decoded.text, decoded.is_cut, following
            if key not in seen:
                seen.add(key)
                then = dict.fromkeys(following, "")
                yield from _views(decoded, then, seen, with_cuts=with_cuts)


def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text.replace(b"H", _HEX))


def _of_backslash(match: re.Match[bytes]) -> bytes:
    """Decode an escape of C, Python, JSON or a shell; in hexadecimal or octal it is a byte."""
    written = match[0][1:]
    if len(written) == 1 and not b"0" <= written < b"8":
        return bytes([_NAMED.get(written[0], written[0])])
    if written[:1] in {b"u", b"U"}:
        return _char(written)
    is_hex = written[:1] == b"x"
    return bytes([int(written.lstrip(b"x"), 16 if is_hex else 8) & 0xFF])


def _of_percent(match: re.Match[bytes]) -> bytes:
    written = match[0][1:]
    return _char(written) if written[:1] == b"u" else bytes([int(written, 16)])


def _as_text(decode: Callable[[re.Match[bytes]], bytes]) -> Callable[[re.Match[bytes]], bytes]:
    """Return a decoder for which a byte above 127 is the character with that number."""

    def decode_text(match: re.Match[bytes]) -> bytes:
        found = decode(match)
        return found.decode("latin-1").encode() if len(found) == 1 else found

    return decode_text


def _char(written: bytes) -> bytes:
    """Decode `u00e4`, `U0001f600`, `u{1f600}`, or two halves of a character."""
    first, *second = (int(each, 16) for each in re.findall(rb"[0-9a-fA-F]+", written))
    if second:
        return chr(0x10000 + ((first - 0xD800) << 10) + second[0] - 0xDC00).encode()
    return _encoded(first)


def _of_entity(match: re.Match[bytes]) -> bytes:
    name = match[0][1:-1].decode()
    if name.startswith("#"):
        digits = name[1:].lower()
        return _encoded(int(digits.lstrip("x"), 16 if digits[0] == "x" else 10))
    return html5.get(f"{name};", match[0].decode()).encode()


def _encoded(code: int) -> bytes:
    return chr(min(code, _LAST_CHAR)).encode(errors="surrogatepass")


def _of_quotes(match: re.Match[bytes]) -> bytes:
    return next(filter(None, match.groups()), b"'")


def _of_digits(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[0][len(match[0]) % 2 :].decode())


_BACKSLASH = _pattern(
    rb"\\(?:%b\\%b|uHHHH|U00HHHHHH|u\{H{1,6}\}|xHH|[0-7]{1,3}|[\x00-\x09\x0b-\x7f])" % (_HIGH, _LOW)
)
_CUT_BACKSLASH = _pattern(
    rb"\\(?:xH?|u\{?H{0,6}|UH{0,7}|[0-7]{1,2}|%b(?:\\(?:uH{0,3})?)?)?\Z" % _HIGH
)
_PERCENT = _pattern(rb"%%(?:HH|%b%%%b|uHHHH)" % (_HIGH, _LOW))
_CUT_PERCENT = _pattern(rb"%%(?:H|uH{0,3}|%b(?:%%(?:uH{0,3})?)?)?\Z" % _HIGH)
_DIGITS, _CUT_DIGITS = rb"(?:HH){6,}|(?:HH)+(?=H?\Z)", _pattern(rb"H\Z")
_DIGITS_SIGN = re2.compile(rb"[0-9a-fA-F]{12}|[0-9a-fA-F]\z")
_DECODERS = {
    # Escapes with a backslash, and the same with \xe4 for a character instead of a byte.
    "b": Decoder(_BACKSLASH, _of_backslash, _CUT_BACKSLASH, re2.compile(rb"\\")),
    "c": Decoder(_BACKSLASH, _as_text(_of_backslash), _CUT_BACKSLASH, re2.compile(rb"\\[x0-7]")),
    # URLs, and the same as JavaScript's `escape` writes it.
    "p": Decoder(_PERCENT, _of_percent, _CUT_PERCENT, re2.compile(rb"%")),
    "q": Decoder(_PERCENT, _as_text(_of_percent), _CUT_PERCENT, re2.compile(rb"%[89a-fA-F]")),
    "h": Decoder(
        _pattern(rb"&(?:#[0-9]{1,7}|#[xX]H{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});"),
        _of_entity,
        _pattern(rb"&[#0-9a-zA-Z]{0,32}\Z"),
        re2.compile(rb"&"),
    ),
    # A quote within single quotes: bash, then dash.
    "s": Decoder(
        _pattern(rb"""'\\''|'"('+)"'|(?<![^\s=])"('+)"'|'"('+)"(?=\s|\Z)"""),
        _of_quotes,
        _pattern(rb"""(?:'(?:\\'?)?|'?"'*"?)\Z"""),
        re2.compile(rb"""'[\\"]|"'|['"]\z"""),
    ),
    # Hexadecimal, at the end of a text its first few digits, too; and the same behind one more
    # digit, such as the last letter of `value`. A text may begin with a byte's second digit.
    "x": Decoder(_pattern(_DIGITS), _of_digits, _CUT_DIGITS, _DIGITS_SIGN),
    "y": Decoder(
        _pattern(rb"(?:\AH|(?<=H)(?<!HH))(?:%b)" % _DIGITS), _of_digits, _CUT_DIGITS, _DIGITS_SIGN
    ),
}
_ANY_SIGN = re2.compile(b"|".join({each.sign.pattern for each in _DECODERS.values()}))
# The decoders, each with those to try on its result: encoders are often given what they, or others,
# have encoded. The how-to lists these pairs, and a test reads them there.
_FIRST = {"b": "bchs", "c": "", "p": "pb", "q": "", "h": "b", "s": "b", "x": "", "y": ""}
