"""Search the shipped documentation by words: its sections, those first whose headings have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from markdown_it.token import Token

from jobs.web.base.documents import markdown_tokens, shipped
from jobs.web.base.news import CHANGELOG

MOST_FOUND = 30
_BEFORE, _EXCERPT = 60, 220
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a page with the text below it. `title`: the page's first heading."""

    page: str
    title: str
    heading: str
    anchor: str
    text: str

    def excerpt(self, word: str) -> str:
        """Return the text around the first place of a word in lower case."""
        begin = max(0, self.text.lower().find(word) - _BEFORE)
        # No word is cut at the beginning.
        begin = self.text.find(" ", begin) + 1 if begin else 0
        shown = self.text[begin : begin + _EXCERPT]
        before = _ELLIPSIS if begin else ""
        after = _ELLIPSIS if begin + _EXCERPT < len(self.text) else ""
        return f"{before}{shown}{after}"


@dataclass(frozen=True, slots=True)
class Found:
    """A section that has all words, with an excerpt around the first of them."""

    section: Section
    excerpt: str


def search_documents(query: str) -> list[Found]:
    """Return the sections that have all words of the query, the best first."""
    words = query.lower().split()
    if not words:
        return []
    having = [each for each in _sections() if all(word in _all_of(each) for word in words)]
    having.sort(key=lambda each: -_score(each, words))
    return [Found(each, each.excerpt(words[0])) for each in having[:MOST_FOUND]]


def _all_of(section: Section) -> str:
    return f"{section.title} {section.heading} {section.text}".lower()


def _score(section: Section, words: list[str]) -> int:
    heading, title = section.heading.lower(), section.title.lower()
    return sum(2 * (word in heading) + (word in title) for word in words)


@cache
def _sections() -> tuple[Section, ...]:
    pages = (name for name in shipped() if name.endswith(".md") and name != CHANGELOG)
    return tuple(section for name in sorted(pages) for section in _sections_of(name))


def _sections_of(name: str) -> Iterator[Section]:
    """Yield the sections of a page in their order."""
    tokens = markdown_tokens(shipped()[name].read_text(encoding="utf-8"))
    begins = [number for number, token in enumerate(tokens) if token.type == "heading_open"]
    title = ""
    for begin, end in zip(begins, [*begins[1:], len(tokens)], strict=True):
        heading, *texts = [text for token in tokens[begin:end] for text in _texts_of(token)]
        title = title or heading
        yield Section(name, title, heading, str(tokens[begin].attrs["id"]), " ".join(texts))


def _texts_of(token: Token) -> list[str]:
    """Return what a reader sees of a block: its text, or its code."""
    if token.type in {"fence", "code_block"}:
        return [" ".join(token.content.split())]
    shown = "".join(each.content or " " for each in token.children or [])
    return [" ".join(shown.split())] if shown.strip() else []
