"""`make features`: which capabilities the last test runs showed, as a table in docs/reference."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.feature_report import ROOT, read_all

CATALOGUE = ROOT / "docs" / "reference" / "features.toml"
TABLE = ROOT / "docs" / "reference" / "features.md"
INTRODUCTION = """\
# Features

Written by `make features` from the last run of every test suite; do not edit. `none`: no test has
shown the row yet. What the ids mean is below the table, and in [features.toml](features.toml).

| id | tests | pass / fail / none |
|---|---|---|
"""


def catalogue() -> dict[str, dict[str, str]]:
    """Every feature id with its capability and the milestone that brings it, in order."""
    groups = tomllib.loads(CATALOGUE.read_text())
    return {
        feature_id: row for group in groups.values() for feature_id, row in group["rows"].items()
    }


def verdict(outcomes: Iterable[str]) -> str:
    """fail if any test failed, pass if one passed, none if nothing ran or all was skipped."""
    seen = set(outcomes)
    if "failed" in seen:
        return "fail"
    return "pass" if "passed" in seen else "none"


def render(rows: dict[str, dict[str, str]], results: Iterable[tuple[str, str, str]]) -> str:
    """The page: the table, then what each id means."""
    outcomes: dict[str, list[str]] = defaultdict(list)
    for feature_id, _, outcome in results:
        outcomes[feature_id].append(outcome)
    table = "".join(
        f"| {feature_id} | {len(outcomes[feature_id])} | {verdict(outcomes[feature_id])} |\n"
        for feature_id in rows
    )
    meanings = "".join(
        f"- **{feature_id}** ({row['due']}): {row['capability']}.\n"
        for feature_id, row in rows.items()
    )
    return f"{INTRODUCTION}{table}\n## What the ids mean\n\n{meanings}"


def main(table: Path = TABLE) -> None:
    """Print the table and write it to the reference."""
    page = render(catalogue(), read_all())
    table.write_text(page)
    sys.stdout.write(page.split("\n## ", 1)[0].split("\n\n", 2)[2])


if __name__ == "__main__":
    main()
