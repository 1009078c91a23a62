"""`make features`: what the table makes of JUnit files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.feature_table import case_outcomes, function_outcomes, render, verdict

CASE = """\
<testcase classname="tests.unit.test_a" name="{name}">
  <properties><property name="feature" value="S0.1"/></properties>{outcome}
</testcase>"""
ONE = ("S0.1", "tests.unit.test_a.test_one")


def keep(folder: Path, suite: str, **outcomes: str) -> None:
    """Write a JUnit file with a case for each name: `failure`, `error`, `skipped` or nothing."""
    cases = [
        CASE.format(name=name.replace("__", "[") + "]" * ("__" in name), outcome=outcome)
        for name, outcome in outcomes.items()
    ]
    text = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
    (folder / f"{suite}.xml").write_text(text)


def test_the_cases_of_one_function_count_once_with_their_worst_outcome(tmp_path: Path) -> None:
    keep(tmp_path, "test", test_one__a="", test_one__b="<failure/>", test_one__c="<skipped/>")
    assert function_outcomes(case_outcomes(tmp_path)) == {ONE: "failed"}


def test_a_second_try_replaces_what_the_first_one_said(tmp_path: Path) -> None:
    keep(tmp_path, "test", test_one__a="", test_one__b="<error/>")
    keep(tmp_path, "test-again", test_one__b="")
    assert function_outcomes(case_outcomes(tmp_path)) == {ONE: "passed"}


def test_what_fails_in_one_suite_is_not_made_good_by_another(tmp_path: Path) -> None:
    keep(tmp_path, "test", test_one="")
    keep(tmp_path, "faults", test_one="<failure/>")
    keep(tmp_path, "test-again", test_one="")
    assert function_outcomes(case_outcomes(tmp_path)) == {ONE: "failed"}


def test_a_test_without_a_feature_is_not_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "test.xml").write_text('<testsuite><testcase classname="a" name="b"/></testsuite>')
    assert case_outcomes(tmp_path) == {}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], "none"),
        (["skipped"], "none"),
        (["passed", "skipped"], "pass"),
        (["passed", "failed"], "fail"),
    ],
)
def test_one_failure_fails_a_row_and_a_skipped_test_shows_nothing(
    outcomes: list[str], expected: str
) -> None:
    assert verdict(outcomes) == expected


def test_the_page_lists_every_row_even_without_a_test() -> None:
    rows = {"S0.1": {"due": "core", "capability": "One"}, "S0.2": {"due": "", "capability": "Two"}}
    page = render(rows, {("S0.2", "tests.unit.test_a.test_one"): "passed"})
    assert "| S0.1 | 0 | none |" in page
    assert "| S0.2 | 1 | pass |" in page
