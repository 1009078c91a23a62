"""docs/explanation/reliability.md names a test for each promise, and those tests exist."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT, at, matches_in, missing_definition, text_of

HEADER = "| promise | shown by |"
PAGE = ROOT / "docs" / "explanation" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_a_test_that_the_page_names_exists():
    offenders = [
        at(PAGE, line, missing)
        for line, match in matches_in(PAGE, NAMED)
        if (missing := missing_definition(match[1], match[2] or ""))
    ]
    assert not offenders, "\n".join(offenders)


def test_every_row_of_the_promises_names_a_test():
    table = text_of(PAGE).partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and line != HEADER]
    assert rows
    assert not [row for row in rows if not NAMED.search(row)]
    # A row that is copied and not rewritten promises nothing.
    assert len(set(rows)) == len(rows)
