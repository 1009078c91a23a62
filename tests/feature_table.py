"""`make features`: results of each capability in the last `make test-all`, as a table in docs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
JUNIT = ROOT / ".results" / "junit"
CATALOGUE = ROOT / "docs" / "reference" / "features.toml"
TABLE = ROOT / "docs" / "reference" / "features.md"
INTRODUCTION = """\
# Features

Written by `make features` from the last `make test-all`; do not edit. `tests` counts test
functions, not their cases. `none`: no test has shown the row yet. What the ids mean is below the
table, and in [features.toml](features.toml).

| id | tests | pass / fail / none |
|---|---|---|
"""
# Of the cases of one function, the worst outcome is the function's.
SEVERITY = {"skipped": 0, "passed": 1, "failed": 2}

# By feature id and test.
Outcomes = dict[tuple[str, str], str]


def catalogue() -> dict[str, dict[str, str]]:
    """Return every feature id with its capability and the milestone that brings it, in order."""
    groups = tomllib.loads(CATALOGUE.read_text())
    return {
        feature_id: row for group in groups.values() for feature_id, row in group["rows"].items()
    }


def case_outcomes(results: Path = JUNIT) -> Outcomes:
    """Return the outcome by (feature id, test case) of every JUnit file in the folder.

    A second try (`<suite>-again.xml`) replaces the suite's first outcome of the same case. Of
    two suites that ran the same case, the worse outcome counts.
    """
    found: Outcomes = {}
    for path in results.glob("*.xml"):
        if not path.stem.endswith("-again"):
            again = path.with_stem(f"{path.stem}-again")
            of_suite = _outcomes_in(path) | (_outcomes_in(again) if again.exists() else {})
            for key, outcome in of_suite.items():
                found[key] = max(outcome, found.get(key, outcome), key=SEVERITY.__getitem__)
    return found


def _outcomes_in(path: Path) -> Outcomes:
    report = ElementTree.parse(path).getroot()
    return {(feature_id, case): outcome for feature_id, case, outcome in _cases_of(report)}


def _cases_of(report: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    for case in report.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        for each in case.iter("property"):
            if each.get("name") == "feature":
                yield str(each.get("value")), name, _outcome_of(case)


def _outcome_of(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def function_outcomes(cases: Outcomes) -> Outcomes:
    """Return the outcome by (feature id, test function): the worst of the function's cases."""
    functions: Outcomes = {}
    for (feature_id, case), outcome in cases.items():
        key = (feature_id, case.split("[", 1)[0])
        functions[key] = max(outcome, functions.get(key, outcome), key=SEVERITY.__getitem__)
    return functions


def verdict(outcomes: Iterable[str]) -> str:
    """Return `fail` if any test failed, `pass` if one passed, else `none`."""
    seen = set(outcomes)
    if "failed" in seen:
        return "fail"
    return "pass" if "passed" in seen else "none"


def render(rows: dict[str, dict[str, str]], functions: Outcomes) -> str:
    """Return the page: the table, then what each id means."""
    outcomes: dict[str, list[str]] = defaultdict(list)
    for (feature_id, _), outcome in functions.items():
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


def main(table: Path = TABLE, results: Path = JUNIT) -> None:
    """Print the table and write it to the reference."""
    if not any(results.glob("*.xml")):
        sys.exit(f"There are no results in {results}: run `make test-all` first.")
    page = render(catalogue(), function_outcomes(case_outcomes(results)))
    table.write_text(page)
    sys.stdout.write(page.split("\n## ", 1)[0].split("\n\n", 2)[2])


if __name__ == "__main__":
    main()
