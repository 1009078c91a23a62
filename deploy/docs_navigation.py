"""Write the navigation of the documentation site: the headings and lists of docs/README.md.

    python deploy/docs_navigation.py docs/README.md < docs/zensical.toml

copies the site's configuration to standard output and puts the navigation in place of `nav = []`.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path

HEADING = re.compile(r"(##|###) (.+)")
ITEM = re.compile(r"- \[(.+)\]\((.+\.md)\)")
HOME = '{ "Home" = "README.md" }'


def navigation(index: str, folder: str) -> str:
    """Return the TOML array of the pages that an index lists.

    Args:
        index: Markdown, with `##` for tabs, `###` for groups, and `- [title](page.md)` for pages.
        folder: the index's own folder, relative to the folder of all pages.
    """
    tabs: list[tuple[str, list[tuple[str, list[str]]]]] = []
    for line in index.splitlines():
        if heading := HEADING.fullmatch(line):
            mark, title = heading.groups()
            if mark == "##":
                tabs.append((title, [("", [])]))
            else:
                tabs[-1][1].append((title, []))
        elif item := ITEM.fullmatch(line):
            title, page = item.groups()
            path = posixpath.normpath(posixpath.join(folder, page))
            tabs[-1][1][-1][1].append(_entry(title, json.dumps(path)))
    return _array([HOME, *(_entry(title, _array(_groups(groups))) for title, groups in tabs)])


def _groups(groups: list[tuple[str, list[str]]]) -> list[str]:
    """Return the pages above the first group heading, and then each group as an entry."""
    (_, ungrouped), *named = groups
    return [*ungrouped, *(_entry(title, _array(pages)) for title, pages in named)]


def _entry(title: str, value: str) -> str:
    return f"{{ {json.dumps(title)} = {value} }}"


def _array(values: list[str]) -> str:
    return f"[{', '.join(values)}]"


if __name__ == "__main__":
    source = Path(sys.argv[1])
    pages = navigation(source.read_text(encoding="utf-8"), source.parent.as_posix())
    sys.stdout.write(sys.stdin.read().replace("nav = []", f"nav = {pages}"))
