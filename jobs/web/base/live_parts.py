"""Streams of pages made of parts: the parts that changed, rendered once for all equal readers."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass, field

from jobs.live import sse
from jobs.live.access import Access
from jobs.live.looking import Look, News, Watch
from jobs.live.shared_reads import Common
from jobs.web.base.live import CHANGED

_TIME = re.compile(r"(<time\b[^>]*>)[^<]*")


@dataclass(frozen=True, slots=True)
class Element:
    """A rendered element; two are equal if they differ only in times, which the page counts on."""

    html: str = field(compare=False)
    content: str

    @classmethod
    def of(cls, html: str) -> Element:
        """Make it from its HTML."""
        return cls(html, _TIME.sub(r"\1", html))


class PartsWatch(Watch):
    """A watch over the parts of a page, elements with ids that are always there.

    `key`: equal for readers who see the same.
    """

    def __init__(self, access: Access, key: Hashable) -> None:
        super().__init__(access)
        self._key = key
        self._shown: list[Element] | None = None
        self._is_behind = False

    def render(self) -> list[str]:
        """Render the parts, always as many and in the same order. Runs in a thread."""
        raise NotImplementedError

    def wants(self, hinted: set[str]) -> Common[News] | None:
        """Read the parts after a hint."""
        if not (hinted or self._is_behind):
            return None
        return Common(self._key, self._read)

    def take(self, news: News, *, is_newest: bool) -> Look:
        """Return the parts that changed; the page itself requests all of them at first."""
        new: list[Element] | None = news.found
        if new is None:
            return Look([])
        old, self._shown = self._shown, new
        self._is_behind = not is_newest
        if old is None:
            return Look([CHANGED], is_behind=self._is_behind)
        changed = [each.html for each, was in zip(new, old, strict=True) if each != was]
        events = [sse.event("parts", json.dumps("".join(changed)))] if changed else []
        return Look(events, is_behind=self._is_behind)

    def _read(self) -> News:
        return News([], [Element.of(html) for html in self.render()])
