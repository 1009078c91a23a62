"""Render the documentation that is shipped with the portal: Markdown files as HTML."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

FIRST_PAGE = "docs/README.md"
_PAGES = ("*.md", "docs/**/*.md", "docs/reference/*.json", "docs/images/*.png")
# Pictures of two looks are HTML, which is not rendered.
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_NO_SLUG = re.compile(r"[^\w\- ]")
# Markdown's own HTML is off: texts of the files cannot become markup.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the documentation by their paths; empty where none are shipped."""
    root = Path(settings.BASE_DIR)
    return {
        path.relative_to(root).as_posix(): path
        for pattern in _PAGES
        for path in root.glob(pattern)
        if (root / FIRST_PAGE).exists()
    }


def documentation_url() -> str:
    """Return where the documentation is: its own site, else shipped pages; "" if there is none."""
    if settings.MPORTAL_DOCS_URL:
        return str(settings.MPORTAL_DOCS_URL)
    return reverse("web:help", args=[FIRST_PAGE]) if shipped() else ""


@lru_cache(maxsize=128)
def rendered(name: str) -> SafeString:
    """Render a shipped page."""
    return render(shipped()[name].read_text(encoding="utf-8"), name)


def render(text: str, name: str) -> SafeString:
    """Render Markdown whose relative links are those of the file `name`."""
    tokens = markdown_tokens(text)
    _lead_all(tokens, name)
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return mark_safe(html)  # noqa: S308


def markdown_tokens(text: str) -> list[Token]:
    """Return the blocks of a Markdown text, whose headings have their ids."""
    tokens = _MARKDOWN.parse(_PICTURE.sub("", text))
    used: Counter[str] = Counter()
    for token, after in pairwise(tokens):
        if token.type == "heading_open":
            anchor = slug(after.content)
            token.attrSet("id", f"{anchor}-{used[anchor]}" if used[anchor] else anchor)
            used[anchor] += 1
    return tokens


def title_of(name: str) -> str:
    """Return the first heading of a shipped page."""
    text = shipped()[name].read_text(encoding="utf-8")
    return next((line[2:] for line in text.splitlines() if line.startswith("# ")), name)


def _lead_all(tokens: list[Token], name: str) -> None:
    """Give links and pictures their addresses here."""
    for child in (child for token in tokens for child in token.children or []):
        if child.type == "link_open":
            _lead(child, "href", name)
        elif child.type == "image":
            _lead(child, "src", name)


def slug(heading: str) -> str:
    """Return the id of a heading, as links on GitHub have it."""
    return _NO_SLUG.sub("", heading.lower()).strip().replace(" ", "-")


def _lead(token: Token, attribute: str, name: str) -> None:
    """Set where a link leads; what is not shipped has no address."""
    target = urlsplit(str(token.attrs[attribute]))
    if target.scheme or not target.path:
        return
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.path))
    if path in shipped():
        fragment = f"#{target.fragment}" if target.fragment else ""
        token.attrSet(attribute, reverse("web:help", args=[path]) + fragment)
    else:
        del token.attrs[attribute]
