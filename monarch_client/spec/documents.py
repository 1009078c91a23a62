"""Several specifications in one YAML text, parted by lines of ---."""

from __future__ import annotations

import re
from dataclasses import dataclass

# At the beginning of a line YAML takes these for nothing else, wherever they stand.
_MARK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SAYS_SOMETHING = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One of them. `lines_before`: how many lines of the whole text come before its first."""

    text: str
    lines_before: int = 0


def documents_in(text: str) -> list[Document]:
    """The documents that say something; the text itself where it is not several."""
    starts = [0, *(match.start() for match in _MARK.finditer(text) if match.start())]
    ends = [*starts[1:], len(text)]
    found = [
        Document(text[start:end], text.count("\n", 0, start))
        for start, end in zip(starts, ends, strict=True)
        if _SAYS_SOMETHING.search(_MARK.sub("", text[start:end]))
    ]
    return found if len(found) > 1 else [Document(text)]
