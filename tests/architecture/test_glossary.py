"""docs/explanation/glossary.md defines each term once, and names code that exists."""

from __future__ import annotations

import re
from collections import Counter

from tests.architecture.source import ROOT, at, matches_in, missing_definition, text_of

PAGE = ROOT / "docs" / "explanation" / "glossary.md"
ROW = re.compile(r"^\| \*\*([^|]+?)\*\*.*\| `([\w/]+\.py)(?:::(\w+))?` \|$", re.MULTILINE)


def test_every_term_names_code_that_exists() -> None:
    offenders = [
        at(PAGE, line, f"{row[1]}: {missing}")
        for line, row in matches_in(PAGE, ROW)
        if (missing := missing_definition(row[2], row[3] or ""))
    ]
    assert not offenders, "\n".join(offenders)


def test_every_row_defines_one_term_that_no_other_row_defines() -> None:
    terms = [row[1] for _, row in matches_in(PAGE, ROW)]
    rows = [line for line in text_of(PAGE).splitlines() if line.startswith("| **")]
    assert len(terms) == len(rows), "a row is not `| **term** | meaning | code |`"
    assert [term for term, times in Counter(terms).items() if times > 1] == []
