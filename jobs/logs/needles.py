"""In which forms the value of a secret may stand in a text."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

# Anything shorter would be found in the middle of other words.
LEAST_CHARS = 6
# Of a value with more lines the first ones; nobody keeps a book in a secret.
_MOST_LINES = 2000
# How `base64` and `email` fold what they write.
_FOLDED_AT = 76
# Line ends, also as they stand within a JSON string.
_LINE_END = re.compile(r"\r\n|\r|\n|\\r\\n|\\n")


def needles_of(value: str) -> set[str]:
    """Every form to look for, each of LEAST_CHARS at least: that of each line, and encodings."""
    lines = [line.strip() for line in _LINE_END.split(value)[:_MOST_LINES]]
    found = {form for line in lines if _is_long(line) for form in _forms(line)}
    if found:
        found |= set(_encoded(value.strip()))
    return {needle for needle in found if _is_long(needle)}


def is_masked(value: str) -> bool:
    """Whether the value is long enough to be looked for."""
    return bool(needles_of(value))


def _is_long(text: str) -> bool:
    return len(text) >= LEAST_CHARS


def _forms(line: str) -> Iterator[str]:
    """A line as it is, and as it is written in JSON, Python, a shell, HTML or a URL."""
    yield line
    yield json.dumps(line)[1:-1]
    yield json.dumps(line, ensure_ascii=False)[1:-1]
    yield repr(line)[1:-1]
    yield shlex.quote(line).removeprefix("'").removesuffix("'")
    yield html.escape(line)
    yield quote(line)
    yield quote(line, safe="")
    yield quote_plus(line)


def _encoded(value: str) -> Iterator[str]:
    """A whole value in hexadecimal and base64, wherever it begins within what was encoded."""
    raw = value.encode(errors="surrogatepass")
    yield raw.hex()
    yield raw.hex().upper()
    for before in range(3):
        # The first characters depend on what stands before it, the last on what comes after.
        text = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        begin = (before * 8 + 5) // 6
        whole = (before + len(raw)) * 8 // 6
        middle = text[begin:whole]
        yield middle
        yield middle.replace("+", "-").replace("/", "_")
        if before == 0:
            yield from (middle[at : at + _FOLDED_AT] for at in range(0, len(middle), _FOLDED_AT))
