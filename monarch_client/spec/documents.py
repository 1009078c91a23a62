"""Read several specifications from one YAML text, separated by lines of ---."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from monarch_client.errors import SpecError
from monarch_client.spec.findings import SpecCode
from monarch_client.spec.pipelines import in_order
from monarch_client.spec.text_edits import line_before_edits

# The advice for a text of several, where one job is scheduled.
OF_A_SCHEDULE = "a schedule runs one job. Keep one of them, or make a schedule of each."
# At the beginning of a line YAML takes these for nothing else, wherever they stand.
_MARK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SAYS_SOMETHING = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One specification of a YAML text, as it is to be parsed.

    `lines_before`: how many lines of the whole text come before its first. `source`: its part of
    the whole text, where `text` says more than that.
    """

    text: str
    lines_before: int = 0
    source: str = ""

    def line_of(self, line: int, sent: str | None = None) -> int:
        """Return the line of the whole text that is this `line` of the document.

        `sent`: what `set_key` made of the document, if the line is one of that.
        """
        here = line_before_edits(self.source or self.text, sent or self.text, line)
        return here + self.lines_before

    def located(self, error: SpecError, sent: str | None = None) -> SpecError:
        """Return an error of the document with its line of the whole text.

        It keeps its columns only if that line is as it was written.
        """
        if error.line is None:
            return error
        line = self.line_of(error.line, sent)
        written = (self.source or self.text).split("\n")[line - self.lines_before - 1]
        is_same = (sent or self.text).split("\n")[error.line - 1 : error.line] == [written]
        if is_same:
            return replace(error, line=line)
        return replace(error, line=line, column=None, end_column=None)


def several_documents(text: str, advice: str) -> SpecError | None:
    """Return the error of a text with several specifications, where one is taken; else None."""
    documents = documents_in(text)
    if len(documents) < 2:  # noqa: PLR2004 - a single one
        return None
    message = f"This text has {len(documents)} specifications, separated by ---, and {advice}"
    line = documents[1].lines_before + 1
    return SpecError("", line, SpecCode.YAML_FEATURE.value, message)


def documents_in(text: str) -> list[Document]:
    """Return the specifications in `text`; the text itself where it is not several.

    Each of several depends on the one before, as SkyPilot runs them: see `pipelines`.
    """
    found = _parts_of(text)
    if len(found) < 2:  # noqa: PLR2004 - a single one
        return [Document(text)]
    # A header is no specification: what is left are the last ones.
    texts = in_order([each.text for each in found])
    documents = found[len(found) - len(texts) :]
    return [
        Document(text, each.lines_before, each.text)
        for text, each in zip(texts, documents, strict=True)
    ]


def is_several(text: str) -> bool:
    """Whether `text` has several documents, a header included."""
    return len(_parts_of(text)) > 1


def _parts_of(text: str) -> list[Document]:
    starts = [0, *(match.start() for match in _MARK.finditer(text) if match.start())]
    ends = [*starts[1:], len(text)]
    return [
        Document(text[start:end], text.count("\n", 0, start))
        for start, end in zip(starts, ends, strict=True)
        if _SAYS_SOMETHING.search(_MARK.sub("", text[start:end]))
    ]
