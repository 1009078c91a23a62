"""Explain terms at their first use on a page, with the definitions of the glossary."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from django import template
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from jobs.web.base.documents import shipped

GLOSSARY = "docs/explanation/glossary.md"
_ROW = re.compile(r"^\| \*\*([^|]+?)\*\*[^|]*\| ([^|]+) \|", re.MULTILINE)
_MARKDOWN = MarkdownIt("commonmark")

register = template.Library()


@cache
def meanings() -> dict[str, str]:
    """Return the definition of each term of the glossary; none where it is not shipped."""
    path = shipped().get(GLOSSARY)
    if path is None:
        return {}
    rows = _ROW.findall(path.read_text(encoding="utf-8"))
    return {name: _plain(meaning) for names, meaning in rows for name in names.split(", ")}


@register.simple_tag(takes_context=True)
def term(context: Context, name: str, shown: str = "") -> SafeString | str:
    """Write a term as a button that explains it; from its second use on a page as plain text.

    `shown`: the term as the sentence has it, such as its plural. Only for parts of a page that
    never change: a part that is rendered again does not know what is before it.
    """
    meaning = meanings().get(name)
    request: Any = getattr(context, "request", None)
    used: set[str] | None = getattr(request, "terms_used", None)
    if meaning is None or request is None or name in (used or ()):
        return shown or name
    request.terms_used = {*(used or ()), name}
    return format_html(
        '<dfn class="term"><button type="button" popovertarget="term-{0}">{1}</button>'
        '<span popover id="term-{0}">{2}</span></dfn>',
        name.replace(" ", "-"),
        shown or name,
        meaning,
    )


def _plain(markdown: str) -> str:
    """Return the text of a line of Markdown."""
    (inline,) = (each for each in _MARKDOWN.parse(markdown) if each.type == "inline")
    return "".join(each.content for each in inline.children or [])
