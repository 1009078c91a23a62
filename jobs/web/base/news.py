"""The news of the portal: the changelog's highlights of the next and the last release."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from django.utils.safestring import SafeString

from jobs.web.base.documents import render, shipped

CHANGELOG = "CHANGELOG.md"
# The cookie with the digest of what a person has seen.
SEEN = "news"
_RELEASE = re.compile(r"^## ", re.MULTILINE)
_AREA = re.compile(r"^#### ", re.MULTILINE)
# Of those who run or change the portal.
_UNSEEN_AREAS = ("Operation", "Development")
_RELEASES = 2
_HIGHLIGHTS = "### Highlights\n\n"


@dataclass(frozen=True, slots=True)
class News:
    """The entries as HTML, and a digest that changes with them; both empty without a changelog."""

    html: SafeString
    digest: str


@cache
def news() -> News:
    """Return the news of this version of the portal."""
    path = shipped().get(CHANGELOG)
    if path is None:
        return News(SafeString(""), "")
    text = for_users(path.read_text(encoding="utf-8"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return News(render(f"# What's new\n\n{text}", CHANGELOG), digest)


def for_users(changelog: str) -> str:
    """Return the highlights of the newest releases of a changelog.

    Of a release without highlights: all but the areas that users do not see.
    """
    releases = _RELEASE.split(changelog)[1 : 1 + _RELEASES]
    return "".join(f"## {_highlights(each) or _without_unseen(each)}" for each in releases)


def _highlights(release: str) -> str:
    """Return a release with its highlights alone; "" if it has none."""
    head, mark, rest = release.partition(_HIGHLIGHTS)
    return f"{head}{rest.partition('### ')[0]}" if mark else ""


def _without_unseen(release: str) -> str:
    head, *areas = _AREA.split(release)
    kept = [head]
    for area in areas:
        if area.startswith(_UNSEEN_AREAS):
            # The next kind of change, such as Fixed, begins after the last area of one.
            _, mark, rest = area.partition("\n### ")
            kept.append(f"{mark.lstrip()}{rest}")
        else:
            kept.append(f"#### {area}")
    return "".join(kept)
