"""What `make features` keeps of test runs, and how it judges them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.feature_report import Recorder, function_of, read_all, store, suite_of
from tests.feature_table import render, verdict


def report(nodeid: str, outcome: str, *features: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=nodeid,
        location=("", 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=None,
        when="call",
        user_properties=[("feature", feature) for feature in features],
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    file = tmp_path / "tests" / "unit" / "test_a.py"
    file.parent.mkdir(parents=True)
    file.write_text("def test_one(): ...\ndef test_two(): ...\n")
    return tmp_path


def test_a_run_keeps_the_worst_outcome_of_a_test(root: Path) -> None:
    recorder = Recorder(root / "results", root)
    for outcome in ("passed", "failed", "passed"):
        recorder.pytest_runtest_logreport(report("tests/unit/test_a.py::test_one", outcome, "S0.1"))
    recorder.pytest_sessionfinish()
    assert list(read_all(root / "results")) == [
        ("S0.1", "tests/unit/test_a.py::test_one", "failed")
    ]


def test_a_test_without_a_feature_is_not_kept(root: Path) -> None:
    recorder = Recorder(root / "results", root)
    recorder.pytest_runtest_logreport(report("tests/unit/test_a.py::test_one", "passed"))
    recorder.pytest_sessionfinish()
    assert not (root / "results").exists()


def test_a_second_look_at_what_failed_keeps_what_else_the_function_showed(root: Path) -> None:
    one = "tests/unit/test_a.py::test_one"
    for again, outcomes in (False, ["passed", "failed"]), (True, ["", "passed"]):
        recorder = Recorder(root / "results", root, again=again)
        for name, said in zip("xy", outcomes, strict=True):
            if said:
                recorder.pytest_runtest_logreport(report(f"{one}[{name}]", said, "S0.1"))
        recorder.pytest_sessionfinish()
    assert list(read_all(root / "results")) == [
        ("S0.1", f"{one}[x]", "passed"),
        ("S0.1", f"{one}[y]", "passed"),
    ]


def test_a_narrow_run_does_not_forget_what_others_showed(root: Path) -> None:
    path = root / "results" / "unit.json"
    keep(path, {"tests/unit/test_a.py::test_one": outcome("passed")}, root)
    keep(path, {"tests/unit/test_a.py::test_two[x]": outcome("failed")}, root)
    assert set(json.loads(path.read_text())) == {
        "tests/unit/test_a.py::test_one",
        "tests/unit/test_a.py::test_two[x]",
    }


def test_a_parameter_that_is_gone_is_forgotten_when_its_test_runs_again(root: Path) -> None:
    path = root / "results" / "unit.json"
    keep(path, {"tests/unit/test_a.py::test_two[old]": outcome("failed")}, root)
    keep(path, {"tests/unit/test_a.py::test_two[new]": outcome("passed")}, root)
    assert set(json.loads(path.read_text())) == {"tests/unit/test_a.py::test_two[new]"}


def test_a_test_that_no_longer_exists_is_forgotten(root: Path) -> None:
    path = root / "results" / "unit.json"
    keep(path, {"tests/unit/test_a.py::test_deleted": outcome("passed")}, root)
    keep(path, {"tests/unit/test_a.py::test_one": outcome("passed")}, root)
    assert set(json.loads(path.read_text())) == {"tests/unit/test_a.py::test_one"}


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
    page = render(rows, [("S0.2", "tests/unit/test_a.py::test_one", "passed")])
    assert "| S0.1 | 0 | none |" in page
    assert "| S0.2 | 1 | pass |" in page


def test_the_folder_below_tests_names_the_suite() -> None:
    assert suite_of("tests/integration/api/test_jobs.py::test_x[a/b]") == "integration"
    assert suite_of("tests/test_top.py::test_x") == "other"


def test_a_test_that_lost_its_mark_shows_nothing_any_more(root: Path) -> None:
    keep(
        root / "results" / "unit.json", {"tests/unit/test_a.py::test_one": outcome("passed")}, root
    )
    recorder = Recorder(root / "results", root)
    recorder.pytest_runtest_logreport(report("tests/unit/test_a.py::test_one", "passed"))
    recorder.pytest_sessionfinish()
    assert list(read_all(root / "results")) == []


def keep(path: Path, outcomes: dict[str, dict[str, object]], root: Path) -> None:
    store(path, outcomes, {function_of(nodeid) for nodeid in outcomes}, root)


def outcome(result: str) -> dict[str, object]:
    return {"features": ["S0.1"], "outcome": result}
